"""Two processes make the updates of one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from learner.cli import main
from learner.metrics import read_metrics
from learner.models import load
from learner.ranks import Ranks
from tests.learner.quick import settings, stage
from tests.learner.stage import listening

ROOT = Path(__file__).parents[2]
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "-m", "learner"]


def test_one_process_has_all_and_changes_nothing() -> None:
    alone = Ranks()
    weight = torch.nn.Parameter(torch.ones(2))
    alone.sum_gradients([weight])
    assert weight.grad is None
    assert list(alone.share([1, 2, 3])) == [1, 2, 3]
    assert alone.sum_figures({"a": 1.5}, []) == {"a": 1.5}
    assert Ranks(1, 2).share([0, 1, 2, 3, 4]) == [1, 3]


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["demo", "vapo", "single-turn"])
def test_two_gloo_ranks_give_the_curve_of_one_process(preset: str, tmp_path: Path) -> None:
    from tests.learner.test_single_turn import Evaluator

    changes = settings(
        "rollout.groups=4",
        "rollout.group_size=3",
        "run.updates=3",
        "evaluation.episodes=5",
        "model.max_tokens=8",
        "optim.micro_tokens=100",
    )
    with listening(Evaluator() if preset == "single-turn" else stage()) as url:
        command = ["train", preset, "--url", url, *changes]
        assert main([*command, "--out", str(tmp_path / "one")]) == 0
        done = subprocess.run(
            [sys.executable, *TORCHRUN, *command, "--out", str(tmp_path / "two")],
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("held-out reward") == 3 + 2  # said by the first process alone
    one, two = (read_metrics(tmp_path / name / "metrics.jsonl") for name in ("one", "two"))
    assert [record["step"] for record in two] == [record["step"] for record in one]
    for alone, shared in zip(one, two, strict=True):
        names = [name for name in alone if not name.startswith("seconds/")]
        assert {name: shared[name] for name in names if name != "kind"} == pytest.approx(
            {name: alone[name] for name in names if name != "kind"}, rel=1e-3, abs=1e-4
        )
    weights = [load(str(tmp_path / name / "checkpoints/step-000003/model"))[0].state_dict() for name in ("one", "two")]
    assert all(torch.allclose(value, weights[1][name], atol=1e-4) for name, value in weights[0].items())
