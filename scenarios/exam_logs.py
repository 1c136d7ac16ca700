"""Logs that show whether a rubric without a persona tells good conversations from bad ones: `<slug>.logs.jsonl`.

A row is a conversation with a grade, in which the agent is the assistant: `{"grade": 5, "messages": […]}`. Beside them
stand conversations that nobody should be paid for, whatever the rubric says.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from personas.text.sentences import sentences
from scenarios.exam import WAFFLE
from scenarios.schema import Rubric

SUFFIX = ".logs.jsonl"
EMPTY_TURNS = 6
_HEARD = "I see. And what happens now?"


@dataclass(frozen=True)
class Log:
    """A conversation and how good its author finds it."""

    grade: float
    messages: tuple[dict[str, Any], ...] = field(repr=False)
    number: int


def load_logs(path: Path) -> list[Log]:
    """The logs of a file; none if there is no such file. `ValueError` names file and line."""
    if not path.is_file():
        return []
    rows = path.read_text(encoding="utf-8").split("\n")
    return [_log(path, number, text) for number, text in enumerate(rows, 1) if text.strip()]


def _log(path: Path, number: int, text: str) -> Log:
    try:
        row = json.loads(text)
        return Log(float(row["grade"]), tuple(dict(each) for each in row["messages"]), number)
    except (ValueError, KeyError, TypeError):
        shape = '{"grade": 5, "messages": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}]}'
        raise ValueError(f"{path}:{number}: a log is {shape}: correct the row") from None


def empty_talk(rubric: Rubric, opening: str) -> dict[str, list[dict[str, Any]]]:
    """Conversations of agents that understand nothing, by their name."""
    words = _words_of(rubric)
    said = {
        "waffle": list(WAFFLE[:EMPTY_TURNS]),
        "keywords": [", ".join(words[i::EMPTY_TURNS]) for i in range(EMPTY_TURNS) if words[i::EMPTY_TURNS]],
        "recital": [criterion.about for criterion in rubric.criteria][:EMPTY_TURNS],
        "refusal": ["I'm sorry, I can't help with that."] * EMPTY_TURNS,
        "silence": [""] * EMPTY_TURNS,
    }
    return {name: _talk(opening, lines) for name, lines in said.items() if lines}


def _words_of(rubric: Rubric) -> list[str]:
    """What somebody would list who had seen the rubric."""
    found: list[str] = []
    for check in (check for criterion in rubric.criteria for check in criterion.checks):
        if check.keyword:
            found += [*check.keyword.any, *check.keyword.all]
        if check.similar:
            found += [
                word for line in check.similar.exemplars for each in sentences(line) for word in each.split()[-3:]
            ]
    return list(dict.fromkeys([*found, "quality", "resolution", "empathy", "next steps", "clarity", "safety"]))


def _talk(opening: str, lines: Sequence[str]) -> list[dict[str, Any]]:
    messages = [{"role": "user", "content": opening}]
    for line in lines:
        messages += [{"role": "assistant", "content": line}, {"role": "user", "content": _HEARD}]
    return messages
