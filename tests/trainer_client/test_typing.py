"""The package is typed for those who use it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.slow
def test_a_trainers_program_passes_mypy_strict(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "from trainer_client import ChatMessage, LabsClient\n"
        "def agent(messages: list[ChatMessage]) -> str:\n"
        "    return messages[-1]['text']\n"
        "LabsClient().with_raw_response.turn(5)\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(tmp_path / "cache")]
    given = [str(HERE / "consumer.py"), str(wrong)]
    done = subprocess.run([*command, *given], capture_output=True, text=True, check=False, cwd=HERE.parents[1])
    lines = done.stdout.splitlines()
    assert [line for line in lines if "wrong.py" not in line] == []
    assert len([line for line in lines if "error:" in line]) >= 2
