"""What is to run on a GPU runs as far as it can without one, and says what is wrong in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import learner_gpu
from benchmarks.processes import ROOT

pytestmark = pytest.mark.slow


def gpu(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", str(ROOT / "benchmarks/gpu.sh"), *arguments], check=False, capture_output=True, text=True
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["--quick"], "there is no option --quick"), (["/no/python"], "there is no /no/python")],
)
def test_wrong_arguments_are_one_line(arguments: list[str], said: str) -> None:
    found = gpu(*arguments)
    assert found.returncode == 2
    assert said in found.stderr
    assert found.stderr.count("\n") == 1


def test_a_dry_run_goes_every_way_and_writes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "trl.trainer.utils", None)  # a comparison, and no part of the learner
    monkeypatch.setattr(sys, "argv", ["learner_gpu", "--dry-run"])
    monkeypatch.chdir(tmp_path)
    learner_gpu.main()
    said = capsys.readouterr().out
    ways = [line.split(" | ")[0].strip("| ") for line in said.splitlines() if line.startswith("| ")]
    assert ways == ["way", "---", "packed", "padded", "TRL 1.16"]
    assert "not installed" in said
    assert "tokens a second with CUDA graphs" in said
    assert "s until it speaks again" in said
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_script_hands_its_arguments_on() -> None:
    found = gpu("--dry-run", sys.executable)
    assert found.returncode == 0, found.stderr
    assert "| packed |" in found.stdout
