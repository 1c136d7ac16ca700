"""An engine inside the process: given weights from memory, asleep during updates, and tried by the canary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from learner.canary import CanaryError
from learner.config import Config, ConfigError, read
from learner.generate.colocated import ColocatedGenerator, Place
from learner.generate.session import Continuation
from learner.generate.vllm import EngineError, Sampling
from tests.learner.small import policy, tokenizer
from tests.learner.test_loop import config, records, run
from tests.learner.vllm_engine import LLM, installed

ON_GPU = Place("float32", 0.3, on_gpu=True, sleeps=True)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A model in a folder, as both sides load it."""
    words = tokenizer()
    policy(words, spread=2.0).model.save_pretrained(tmp_path / "base")
    words.save_pretrained(tmp_path / "base")
    return tmp_path / "base"


def settings(base: Path, **sections: Any) -> Config:
    model = {"path": str(base), "max_tokens": 6, "temperature": 0.8}
    return config(base.parent, 2, model=model, generator={"kind": "vllm_colocated"}, **sections)


def step(generator: ColocatedGenerator) -> None:
    generator.start().step({3: Continuation([5, 6, 7], np.random.SeedSequence(1))})


def test_it_sleeps_when_it_is_told_to_and_wakes_for_turns_and_weights(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with installed(monkeypatch) as made:
        generator = ColocatedGenerator(str(base), Sampling(tokenizer().eos_token_id, max_tokens=3), ON_GPU)
        step(generator)
        generator.rest()
        generator.rest()
        step(generator)
        generator.rest()
        generator.give_weights([])
        generator.close()
    [engine] = made
    asleep = ["sleep 1", "wake_up"]
    assert engine.calls == [
        "generate",
        *asleep,
        "generate",
        *asleep,
        "reload_weights",
        "reset_prefix_cache",
        "shutdown",
    ]
    assert engine.options["enable_sleep_mode"]
    assert engine.options["logprobs_mode"] == "processed_logprobs"


@pytest.mark.parametrize("lora", [{}, {"lora": {"rank": 4, "alpha": 8}}], ids=["weights", "adapters"])
@pytest.mark.slow
def test_a_run_gives_it_the_weights_of_each_update(
    base: Path, lora: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with installed(monkeypatch) as made:
        run(settings(base, optim={"learning_rate": 1e-2}, **lora), base.parent / "run")
    [engine] = made
    assert engine.calls.count("reset_prefix_cache") == 1 + 2
    assert engine.calls.count("reload_weights") == (0 if lora else 1 + 2)
    assert not any(call.startswith("sleep") for call in engine.calls)  # a CPU has no memory to give back
    trained = records(base.parent / "run", "train")
    assert all(record["generator/gap"] < 1e-4 for record in trained)
    assert all(abs(record["ess"] - 1.0) < 1e-3 for record in trained)


def test_weights_that_do_not_arrive_end_the_run(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LLM, "collective_rpc", lambda self, method, kwargs: None)
    with installed(monkeypatch), pytest.raises(CanaryError, match="sampler and learner differ"):
        run(settings(base, optim={"learning_rate": 1e-1}), base.parent / "run")


def test_without_the_package_it_says_what_to_do(base: Path) -> None:
    with pytest.raises(EngineError, match="pip install vllm"):
        ColocatedGenerator(str(base), Sampling(0), ON_GPU)


def test_several_processes_are_refused(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from learner.engine import SamplerEngine

    monkeypatch.setenv("WORLD_SIZE", "2")
    words = tokenizer()
    with pytest.raises(EngineError, match="is for one process"):
        SamplerEngine(settings(base), policy(words), None, words, base.parent)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sections", "says"),
    [
        ({"rollout": {"max_staleness": 1}}, "rollout.max_staleness"),
        ({"lora": {"rank": 4}}, "need model.path"),
        ({"model": {"top_p": 0.9}}, "model.top_p"),
    ],
)
def test_what_does_not_go_with_it_is_refused(sections: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        read({"generator": {"kind": "vllm_colocated"}, **sections})
