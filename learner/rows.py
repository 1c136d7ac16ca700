"""Rows of a file of JSON lines: all that cannot be used are found at once, and told together or left out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from learner.display import Say, silent
from trainer_client.chat.dialogue import ChatError
from trainer_client.chat.tokens import TemplateError

T = TypeVar("T")
MOST_KINDS = 5
"""Kinds of mistakes that are told; the others are counted."""
SKIP = "mend them, or leave them out with --skip-bad"


class RowError(ValueError):
    """A row of a file that cannot be learned from."""


def read_rows(
    path: Path,
    read: Callable[[Mapping[str, Any]], T],
    *,
    key: str = "data.file",
    skip_bad: bool = False,
    say: Say = silent,
) -> list[T]:
    """Apply `read` to each row. Raises RowError, which tells of all rows that it cannot read.

    `key` is the setting that names the file. With `skip_bad` such rows are left out, and `say` is told.
    """
    lines = _lines(path, key)
    found: list[T] = []
    bad: dict[int, str] = {}
    for number, line in lines:
        try:
            found.append(read(_parsed(line)))
        except (RowError, ChatError, TemplateError) as error:
            bad[number] = str(error)
    if not bad:
        return found
    if not skip_bad or not found:
        raise RowError(f"{_told(path, bad, len(lines))}; {SKIP}" if found else _told(path, bad, len(lines)))
    say(f"{path}: {len(bad)} of {len(lines)} rows are left out: {_kinds(bad)}")
    return found


def check_file(path: Path, key: str = "data.file") -> None:
    """Refuse a file that cannot be read or has no rows; what is in its rows is read later."""
    _lines(path, key)


def _lines(path: Path, key: str) -> list[tuple[int, str]]:
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise RowError(
            f"{key}: cannot read {path}: {getattr(error, 'strerror', None) or 'it is not UTF-8 text'}"
        ) from None
    rows = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not rows:
        raise RowError(f"{path}: the file has no rows")
    return rows


def _parsed(line: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        raise RowError("not valid JSON") from None
    if not isinstance(row, dict):
        raise RowError("not a JSON object")
    return row


def _told(path: Path, bad: Mapping[int, str], rows: int) -> str:
    if len(bad) == 1:
        [(number, problem)] = bad.items()
        return f"{path}, row {number}: {problem}"
    return f"{path}: {len(bad)} of {rows} rows cannot be used: {_kinds(bad)}"


def _kinds(bad: Mapping[int, str]) -> str:
    """Each kind of mistake once, with the first row that has it and how many more do."""
    kinds: dict[str, list[int]] = {}
    for number, problem in bad.items():
        kinds.setdefault(re.sub(r"\d[\d,]*", "#", problem), []).append(number)
    several = sorted(kinds.values(), key=len, reverse=True)
    told = [_kind(numbers, bad[numbers[0]]) for numbers in several[:MOST_KINDS]]
    left = sum(map(len, several[MOST_KINDS:]))
    return "; ".join([*told, f"and {left} more of other kinds"] if left else told)


def _kind(numbers: Sequence[int], problem: str) -> str:
    more = f" (and {len(numbers) - 1} more rows)" if len(numbers) > 1 else ""
    return f"row {numbers[0]}{more}: {problem}"
