"""The next batch is played while the present one is learned from: repeatable, one update old, and never lost."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from learner.canary import CanaryError
from learner.config import ConfigError, read
from learner.overlap import Batch, BatchPlayer, PrefetchedBatches
from learner.rollout import Collected
from learner.types import Group
from learner.update import MismatchError
from tests.learner.small import tokenizer, trajectory
from tests.learner.stage import StageServer
from tests.learner.test_loop import config, digest, records, run

pytestmark = pytest.mark.slow

STALE: dict[str, Any] = {"rollout": {"groups": 2, "group_size": 6, "max_staleness": 1}}


TWO: dict[str, Any] = {"rollout": {**STALE["rollout"], "max_staleness": 2}}


def test_a_batch_is_played_by_the_policy_before_the_last_update(tmp_path: Path) -> None:
    opened = run(config(tmp_path, 4, **STALE), tmp_path / "run")
    assert [record["rollout/staleness"] for record in records(tmp_path / "run", "train")] == [0, 1, 1, 1]
    assert all(0.0 < record["ess"] <= 1.0 + 1e-6 for record in records(tmp_path / "run", "train"))
    assert opened.objective.correction == "token_truncate"
    assert len({record["mismatch_k3"] > 1e-7 for record in records(tmp_path / "run", "train")[1:]} - {True}) == 0


def test_two_batches_are_played_ahead_and_weighed(tmp_path: Path) -> None:
    opened = run(config(tmp_path, 5, **TWO), tmp_path / "run")
    training = records(tmp_path / "run", "train")
    assert [record["rollout/staleness"] for record in training] == [0, 1, 2, 2, 2]
    assert opened.objective.correction == "token_truncate"
    assert training[0]["mismatch_k3"] < 1e-7
    assert all(record["mismatch_k3"] > 1e-7 and 0.0 < record["ess"] < 1.0 for record in training[1:])


def test_it_learns_and_is_the_same_run_each_time(tmp_path: Path) -> None:
    first = run(config(tmp_path, 12, **STALE), tmp_path / "one")
    assert digest(run(config(tmp_path, 12, **STALE), tmp_path / "two")) == digest(first)
    held_out = records(tmp_path / "one", "eval")
    assert held_out[-1]["reward/mean"] > held_out[0]["reward/mean"] + 0.25


@pytest.mark.parametrize("stale", [STALE, TWO], ids=["one", "two"])
def test_batches_that_wait_are_in_the_checkpoint_and_are_trained_once(stale: dict[str, Any], tmp_path: Path) -> None:
    whole = run(config(tmp_path, 6, **stale), tmp_path / "whole")
    server = StageServer(turns=2)
    # Eight held-out episodes, then twelve of each update: asked in the second or third.
    stopped = run(config(tmp_path, 6, **stale), tmp_path / "parts", server, lambda: len(server.created) > 8 + 3 * 12)
    assert 0 < stopped.saved < 6
    waiting = tmp_path / "parts" / "checkpoints" / f"step-{stopped.saved:06d}" / "queue.json"
    assert len(json.loads(waiting.read_text())) == stale["rollout"]["max_staleness"]
    server = StageServer(turns=2)
    assert digest(run(config(tmp_path, 6, **stale), tmp_path / "parts", server)) == digest(whole)
    rows = [[record["reward/mean"] for record in records(tmp_path / name, "train")] for name in ("whole", "parts")]
    assert rows[0] == rows[1]


def test_a_copy_that_does_not_get_the_weights_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.nn.Module, "load_state_dict", lambda *_, **__: None)
    with pytest.raises(CanaryError, match="sampler and learner differ"):
        run(config(tmp_path, 4, **STALE), tmp_path / "run")


def test_without_it_a_run_is_as_it_always_was(tmp_path: Path) -> None:
    changes = {"rollout": {**STALE["rollout"], "max_staleness": 0}}
    opened = run(config(tmp_path, 2, **changes), tmp_path / "zero")
    assert digest(opened) == digest(run(config(tmp_path, 2), tmp_path / "plain"))
    assert opened.objective.correction == "none"


@pytest.mark.parametrize(
    "content",
    [
        {"rollout": {"max_staleness": -1}},
        {"rollout": {"max_staleness": 2}, "generator": {"kind": "vllm", "url": "http://x"}},
    ],
)
def test_what_cannot_be_overlapped_is_refused(content: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="max_staleness"):
        read(content)


def test_a_run_that_recomputes_its_layers_is_the_run_that_keeps_them(tmp_path: Path) -> None:
    """Copies of the weights have layers of their own."""
    model = {"layers": 1, "width": 32, "heads": 4, "max_tokens": 8}
    plain = run(config(tmp_path, 3, **STALE), tmp_path / "plain")
    forgetful = run(config(tmp_path, 3, **STALE, model={**model, "recompute": True}), tmp_path / "forgetful")
    assert digest(forgetful) == digest(plain)


@pytest.mark.parametrize("staleness", [0, 1])
def test_a_run_above_the_limit_of_the_mismatch_ends_with_a_checkpoint_and_goes_on_with_a_higher_one(
    staleness: int, tmp_path: Path
) -> None:
    rollout = {**STALE["rollout"], "max_staleness": staleness}

    def settings(limit: float) -> Any:
        changes = {"run": {"checkpoint_every": 100}, "optim": {"max_mismatch_kl": limit, "learning_rate": 5e-3}}
        return config(tmp_path, 3, rollout=rollout, **changes)

    if not staleness:  # one policy samples and is trained
        run(settings(1e-7), tmp_path / "run")
        return
    with pytest.raises(MismatchError, match=r"Lower rollout\.max_staleness (.|\s)* continues from update 1$"):
        run(settings(1e-7), tmp_path / "run")
    assert run(settings(10.0), tmp_path / "run").step == 3


def test_updates_above_the_limit_are_skipped_and_that_is_said(tmp_path: Path) -> None:
    optim = {"max_mismatch_kl": 1e-7, "on_mismatch": "skip", "learning_rate": 5e-3}
    told: list[str] = []
    opened = run(config(tmp_path, 4, **STALE, optim=optim), tmp_path / "run", say=told.append)
    training = records(tmp_path / "run", "train")
    # The second batch is of the policy before the first update. The third is of that after it, and nothing was learned
    # in between.
    assert [record.get("update/skipped", 0.0) for record in training] == [0.0, 1.0, 0.0, 1.0]
    assert opened.step == 4
    assert any("skipped: the KL between sampler and trainer is" in line for line in told)


def test_a_batch_of_which_nothing_came_is_played_again() -> None:
    async def go() -> Batch:
        async def play(step: int) -> tuple[Collected, int]:
            return Collected((Group(step, (made,)),), 0.0, 0.0), 0

        ahead = PrefetchedBatches(
            [BatchPlayer(play, lambda: 0.0)], [Batch(3, Collected((Group(1, (), 2),), 0.0, 0.0), 0, 2)]
        )
        return await ahead.take(3, 2, 3)

    made = trajectory(tokenizer(), [("hello", "tell me more.")], [1.0])
    assert asyncio.run(go()).collected.trajectories == [made]
