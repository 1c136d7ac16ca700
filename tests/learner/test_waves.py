"""In how many batches episodes are played: by what takes the time, unless the configuration says."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from learner.run import Run


def run(folder: Path, *, waves: int | None = None, model: str | None = "qwen", generating_s: float) -> Run:
    """A run after its first evaluation, of ten seconds."""
    path = folder / "metrics.jsonl"
    seconds = {"seconds/rollout": 10.0, "seconds/generating": generating_s}
    path.write_text(json.dumps({"kind": "eval", "step": 0, **seconds}) + "\n")
    config = SimpleNamespace(rollout=SimpleNamespace(waves=waves), model=SimpleNamespace(path=model))
    ranks = SimpleNamespace(first=True, agree=lambda value: value)
    return cast(Run, SimpleNamespace(config=config, ranks=ranks, metrics=SimpleNamespace(path=path), waves=9))


@pytest.mark.parametrize(("generating_s", "waves"), [(9.0, 1), (3.0, 2)])
def test_where_sampling_takes_the_time_there_is_one_batch_and_two_where_the_server_does(
    tmp_path: Path, generating_s: float, waves: int
) -> None:
    settling = run(tmp_path, generating_s=generating_s)
    said = Run.settle_waves(settling)
    assert settling.waves == waves
    assert said is not None
    assert f"{generating_s / 10:.0%}" in said


@pytest.mark.parametrize("given", [{"waves": 3}, {"model": None}])
def test_what_the_configuration_says_stays(tmp_path: Path, given: dict[str, Any]) -> None:
    settling = run(tmp_path, generating_s=9.0, **given)
    assert Run.settle_waves(settling) is None
    assert settling.waves == 9
