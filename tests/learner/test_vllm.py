"""A server that samples: the same log-probabilities, weights that arrive, and a canary for those that do not."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from learner import loop
from learner.canary import CanaryError, gap
from learner.config import Config, ConfigError, read
from learner.generate.session import Continuation
from learner.generate.vllm import EngineError, Sampling, VllmGenerator
from learner.run import Run
from tests.learner.small import policy, tokenizer
from tests.learner.test_loop import config, records, run
from tests.learner.vllm_server import VllmServer, serving

LORA: dict[str, Any] = {"rank": 4, "alpha": 8}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A model in a folder, as both sides load it."""
    words = tokenizer()
    policy(words, spread=2.0).model.save_pretrained(tmp_path / "base")
    words.save_pretrained(tmp_path / "base")
    return tmp_path / "base"


def settings(base: Path, url: str, updates: int = 2, **sections: Any) -> Config:
    model = {"path": str(base), "max_tokens": 6, "temperature": 0.8}
    return config(base.parent, updates, model=model, generator={"kind": "vllm", "url": url}, **sections)


def test_turns_are_the_same_as_in_this_process(base: Path) -> None:
    server = VllmServer(base)
    words = tokenizer()
    sampling = Sampling(words.eos_token_id, banned=(0, 1), temperature=0.7, max_tokens=5)
    with serving(server) as url, ExitStack() as stack:
        generator = stack.enter_context(VllmGenerator(url, "base", sampling))
        session = generator.start()
        first = session.step(
            {number: Continuation([5, 6, 7 + number], np.random.SeedSequence(number)) for number in (0, 1)}
        )
        second = session.step({1: Continuation([9], np.random.SeedSequence(3))})
        again = generator.complete([5, 6, 8, *first[1].ids, 9], np.random.SeedSequence(3))
    assert second[1] == again
    assert set(first[0].ids) & {0, 1} == set()


@pytest.mark.parametrize("lora", [None, LORA], ids=["weights", "adapters"])
@pytest.mark.slow
def test_a_run_sends_its_weights_after_each_update_and_the_server_speaks_with_them(
    base: Path, lora: dict[str, Any] | None
) -> None:
    server = VllmServer(base)
    sections = {} if lora is None else {"lora": lora}
    with serving(server) as url:
        opened = run(settings(base, url, optim={"learning_rate": 1e-2}, **sections), base.parent / "run")
    sent = "/v1/load_lora_adapter" if lora else "/collective_rpc"
    assert server.calls.count(sent) == 1 + 2
    assert not server.paused
    trained = records(base.parent / "run", "train")
    assert all(record["generator/gap"] < 1e-4 for record in trained)
    assert all(abs(record["ess"] - 1.0) < 1e-3 for record in trained)
    assert opened.objective.correction == "token_truncate"


@pytest.mark.parametrize("fault", ["raw", "spoils"])
def test_a_server_that_is_not_what_is_trained_ends_the_run(base: Path, fault: str) -> None:
    server = VllmServer(base)
    setattr(server, fault, True)
    with serving(server) as url, pytest.raises(CanaryError, match="or a vLLM server"):
        run(settings(base, url), base.parent / "run")


def test_a_server_that_is_busy_is_asked_again_and_one_that_is_away_is_named(base: Path) -> None:
    server = VllmServer(base)
    server.failures = 2
    sampling = Sampling(tokenizer().eos_token_id, max_tokens=3)
    with serving(server) as url, VllmGenerator(url, "base", sampling, pause_s=0.0) as generator:
        assert generator.complete([5, 6], np.random.SeedSequence(1)).ids
        with pytest.raises(EngineError, match="returned 404 for /nowhere"):
            generator.post("/nowhere")
    with (
        VllmGenerator("http://127.0.0.1:9", "base", sampling, pause_s=0.0) as generator,
        pytest.raises(EngineError, match="does not answer"),
    ):
        generator.complete([5, 6], np.random.SeedSequence(1))


def test_a_server_without_an_address_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"generator\.url"):
        read({"generator": {"kind": "vllm"}})


@pytest.mark.slow
def test_a_server_plays_the_next_batch_while_the_present_one_is_learned_from(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets new weights only between two batches, and is measured with the present ones."""
    server = VllmServer(base)
    gaps: list[float] = []
    evaluate = loop.evaluate

    async def measured(opened: Run, *rest: Any, **more: Any) -> float:
        gaps.append(gap(opened.engine.generator, opened.policy, opened.renderer))
        return await evaluate(opened, *rest, **more)

    monkeypatch.setattr(loop, "evaluate", measured)
    sections: dict[str, Any] = {"optim": {"learning_rate": 1e-2}, "evaluation": {"every": 2, "episodes": 2}}
    sections["rollout"] = {"groups": 1, "group_size": 3, "max_staleness": 1}
    with serving(server) as url:
        run(settings(base, url, 3, **sections), base.parent / "run")
    trained = records(base.parent / "run", "train")
    assert [record["rollout/staleness"] for record in trained] == [0, 1, 1]
    # At the start, before each of three batches, and before each of two evaluations.
    assert server.calls.count("/collective_rpc") == 1 + 3 + 2
    assert all(record["generator/gap"] < 1e-4 for record in trained)
    assert trained[0]["mismatch_k3"] < 1e-7
    assert len(gaps) == 3
    assert max(gaps) < 1e-4
