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
SMALL = (
    "rollout.groups=4",
    "rollout.group_size=3",
    "run.updates=3",
    "evaluation.episodes=5",
    "model.max_tokens=8",
    "optim.micro_tokens=100",
)
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "-m", "learner"]
ACCELERATE = ["-m", "learner", "launch", "--processes", "2"]


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

    changes = settings(*SMALL)
    with listening(Evaluator() if preset == "single-turn" else stage()) as url:
        command = ["train", preset, "--url", url, *changes]
        assert main([*command, "--out", str(tmp_path / "one")]) == 0
        done = launched(TORCHRUN, [*command, "--out", str(tmp_path / "two")], tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("held-out reward") == 3 + 2  # said by the first process alone
    same_curve(tmp_path / "one", tmp_path / "two")


@pytest.mark.slow
@pytest.mark.parametrize(("staleness", "kind"), [(1, "replicate"), (2, "replicate"), (2, "fsdp")])
def test_two_ranks_that_play_ahead_give_the_curve_of_one_process_that_does(
    staleness: int, kind: str, tmp_path: Path
) -> None:
    playing = (f"rollout.max_staleness={staleness}", "rollout.curriculum=spread")
    changes = settings(*SMALL, *playing, f"parallel.kind={kind}")
    with listening(stage()) as url:
        command = ["train", "demo", "--url", url, *changes]
        assert main([*command, "--out", str(tmp_path / "one")]) == 0
        done = launched(TORCHRUN, [*command, "--out", str(tmp_path / "two")], tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    same_curve(tmp_path / "one", tmp_path / "two")
    found = [each for each in read_metrics(tmp_path / "two" / "metrics.jsonl") if each["kind"] == "train"]
    assert [record["rollout/staleness"] for record in found] == list(range(staleness)) + [staleness] * (3 - staleness)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("preset", "launcher"), [("demo", ACCELERATE), ("vapo", [*TORCHRUN, "train"])], ids=["accelerate", "torchrun"]
)
def test_weights_in_parts_give_the_curve_of_one_process(preset: str, launcher: list[str], tmp_path: Path) -> None:
    goes_on_alone = settings(*SMALL, "run.updates=3")
    with listening(stage()) as url:
        command = ["train", preset, "--url", url]
        assert main([*command, *goes_on_alone, "--out", str(tmp_path / "one")]) == 0
        parts = [*command, *settings(*SMALL, "run.updates=2", "parallel.kind=fsdp"), "--out", str(tmp_path / "two")]
        done = launched(launcher, parts[1:], tmp_path)
        assert done.returncode == 0, done.stderr[-2000:]
        # The checkpoint is that of any run: one process goes on with it.
        assert main([*command, *goes_on_alone, "--out", str(tmp_path / "two")]) == 0
    same_curve(tmp_path / "one", tmp_path / "two")


def launched(launcher: list[str], command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *launcher, *command],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def same_curve(alone_in: Path, shared_in: Path) -> None:
    one, two = (read_metrics(folder / "metrics.jsonl") for folder in (alone_in, shared_in))
    assert [record["step"] for record in two] == [record["step"] for record in one]
    for alone, shared in zip(one, two, strict=True):
        names = [name for name in alone if not name.startswith(("seconds/", "memory/")) and name != "kind"]
        assert {name: shared[name] for name in names} == pytest.approx(
            {name: alone[name] for name in names}, rel=1e-3, abs=1e-4
        )
    weights = [load(str(folder / "checkpoints/step-000003/model"))[0].state_dict() for folder in (alone_in, shared_in)]
    assert all(torch.allclose(value, weights[1][name], atol=1e-4) for name, value in weights[0].items())


@pytest.mark.slow
@pytest.mark.parametrize("zero_stage", [1, 2, 3])
def test_deepspeed_gives_the_curve_of_one_process(zero_stage: int, tmp_path: Path) -> None:
    alone = settings(*SMALL)
    chosen = ("parallel.kind=deepspeed", f"parallel.zero_stage={zero_stage}")
    preset = "vapo" if zero_stage == 2 else "demo"
    with listening(stage()) as url:
        command = ["train", preset, "--url", url]
        assert main([*command, *alone, "--out", str(tmp_path / "one")]) == 0
        parts = [*command, *settings(*SMALL, *chosen, "run.updates=2"), "--out", str(tmp_path / "two")]
        done = launched(TORCHRUN, parts, tmp_path)
        assert done.returncode == 0, done.stderr[-3000:]
        assert main([*command, *alone, "--out", str(tmp_path / "two")]) == 0
    same_curve(tmp_path / "one", tmp_path / "two")
