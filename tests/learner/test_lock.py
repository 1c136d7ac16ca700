"""Two learners cannot use one folder."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from learner.cli.main import main
from tests.learner.quick import settings, stage
from tests.learner.stage import listening

HOLD = """
import sys
from pathlib import Path
from learner.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.slow
def test_a_folder_in_use_is_refused_until_the_other_learner_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    with listening(stage()) as url:
        command = ["demo", "--out", str(folder), "--updates", "1", "--url", url, *settings()]
        with subprocess.Popen(
            [sys.executable, "-c", HOLD, str(folder)],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "held\n"
            assert main(command) == 2
            said = capsys.readouterr().err
            assert re.fullmatch(
                rf"learner: another learner \(pid {other.pid}\) is using .*run; wait for its end, or .*\n", said
            )
            other.kill()
        assert not (folder / "checkpoints").exists()
        assert main(command) == 0
    assert (folder / "checkpoints" / "step-000001").exists()
