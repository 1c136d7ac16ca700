"""`kill -9` in the middle of writing: what was acknowledged is there, once and in order."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLAYERS = 8


@pytest.mark.parametrize("lines_read", [1, 40, 400])
def test_acknowledged_turns_survive_a_kill(url: str, database: Path, lines_read: int) -> None:
    child = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("play_for_ever.py")), url, str(PLAYERS)],
        cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdout is not None
    with child.stdout:
        acknowledged = [child.stdout.readline() for _ in range(lines_read)]
        os.kill(child.pid, 9)
        # What it still managed to say before it died was said after the commit, too.
        acknowledged += [line for line in child.stdout if line.endswith("\n")]
    child.wait()

    with sqlite3.connect(database) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        stored = connection.execute("SELECT episode_id, turn FROM turn ORDER BY episode_id, turn").fetchall()
        states = dict(connection.execute("SELECT episode_id, turn FROM episode").fetchall())
    connection.close()
    told = {(line.split()[0], int(line.split()[1])) for line in acknowledged}
    assert len(told) == len(acknowledged)
    assert told <= set(stored)
    per_episode = Counter(episode_id for episode_id, _ in stored)
    assert len(states) == PLAYERS
    for episode_id, turn in states.items():
        assert [t for e, t in stored if e == episode_id] == list(range(1, turn + 1))
        assert per_episode[episode_id] == turn
