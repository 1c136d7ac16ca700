"""The next batch is played while the present one is learned from: repeatable, one update old, and never lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from learner.canary import CanaryError
from learner.config import ConfigError, read
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
        {"rollout": {"max_staleness": 1}, "model": {"recompute": True}},
        {"rollout": {"max_staleness": 1}, "generator": {"kind": "vllm", "url": "http://x"}},
    ],
)
def test_what_cannot_be_overlapped_is_refused(content: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="max_staleness"):
        read(content)
