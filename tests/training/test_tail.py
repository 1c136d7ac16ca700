"""Metrics are read as they are appended, and anew where the learner began the file anew."""

from __future__ import annotations

import json
import os
from pathlib import Path

from reward_server.training.tail import Tail


def line(step: int, kind: str = "train") -> str:
    return json.dumps({"kind": kind, "step": step, "reward/mean": step / 10}) + "\n"


def steps(tail: Tail) -> tuple[list[int], bool] | None:
    """What is new, which is accepted."""
    found = tail.read()
    if found is None:
        return None
    tail.accept(found)
    return [row.step for row in found.rows], found.is_whole


def test_each_line_is_read_once_and_only_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    tail = Tail(path)
    assert steps(tail) is None
    path.write_text(line(0) + line(1)[:9])
    assert steps(tail) == ([0], True)
    assert steps(tail) is None
    path.write_text(line(0) + line(1) + line(2))
    assert steps(tail) == ([1, 2], False)


def test_what_was_not_accepted_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text(line(0))
    tail = Tail(path)
    first = tail.read()
    assert tail.read() == first


def test_a_file_that_was_begun_anew_is_read_from_its_beginning(tmp_path: Path) -> None:
    path, draft = tmp_path / "metrics.jsonl", tmp_path / "metrics.tmp"
    path.write_text(line(0) + line(1) + line(2))
    tail = Tail(path)
    assert steps(tail) == ([0, 1, 2], True)
    draft.write_text(line(0) + line(1))
    os.replace(draft, path)
    assert steps(tail) == ([0, 1], True)


def test_a_line_that_a_crash_cut_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"kind": "tra\n{"step": 4}\n' + line(5))
    assert steps(Tail(path)) == ([5], True)
