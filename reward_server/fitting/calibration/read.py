"""Reads what a calibration is fitted on.

Rows are `{"reward", "label"?}`, `{"rewards": {name: value}, "label"?}`, `{"reward_a", "reward_b", "winner"}`,
`{"rewards_a", "rewards_b", "winner"}`, or the results of `labs evaluate`, joined with labels by `key`, `id` or `row`;
results of chosen and rejected answers are pairs by themselves. A row may name its `group` (a dialogue, a user) and its
`scoring_version`. A row that is wrong stops the command: a calibration is not fitted on part of the data by accident.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from reward_server.errors import InvalidRequest
from reward_server.fitting.calibration.calibration_data import JudgedPairs, LabelledRows
from reward_server.offline.results import RESULTS
from reward_server.offline.rows import InputRow, read_rows
from reward_server.reward_models.calibration import DEFAULT_REWARD
from reward_server.reward_models.reliability import Floats

_WINNERS = {"a": 1.0, "b": 0.0, "tie": 0.5}
_GROUPS = ("group", "dialogue_id", "dialogue")
_JOINED_BY = ("key", "id", "row")


@dataclass(frozen=True)
class CalibrationInput:
    """The data, and what else the rows said."""

    data: LabelledRows | JudgedPairs
    owner: str | None
    """The scoring version that the rows are of; None where they do not say."""
    left_out: int
    """Results without a reward, or without a label where labels were joined."""


@dataclass(frozen=True)
class _Line:
    """One row as it is fitted on: of a pair, both sides."""

    sides: tuple[Mapping[str, float], ...]
    label: float | None
    group: str


def read(path: Path, labels: Path | None = None, scale: tuple[float, float] = (0.0, 1.0)) -> CalibrationInput:
    """The rows of a file or of the folder of an evaluation; `scale` is the labels that mean 0 and 1.

    Raises:
        InvalidRequest: there is no such file, a row cannot be read, or rows are of several kinds or versions.
    """
    if not scale[0] < scale[1]:
        raise InvalidRequest("The label that means 0 must be lower than the one that means 1.")
    source = path / RESULTS if path.is_dir() else path
    if path.is_dir() and not source.is_file():
        raise InvalidRequest(f"The folder {path} holds no {RESULTS} of ./labs evaluate: give a file of rows instead.")
    if not source.exists():
        raise InvalidRequest(f"There is no {source}.")
    rows = [_content(row, source.name) for row in read_rows(source)]
    if not rows:
        raise InvalidRequest(f"{source.name} has no rows.")
    if _is_result(rows[0][1]):
        scored = [(number, row) for number, row in rows if row.get("status") == "success"]
        lines = _results(scored, _labels(labels, scale))
        return CalibrationInput(_columns(lines, source.name), _owner(row for _, row in scored), _left_out(rows, lines))
    if labels is not None:
        raise InvalidRequest("--labels goes with the results of ./labs evaluate; other rows hold their labels.")
    lines = [_line(number, row, scale) for number, row in rows]
    return CalibrationInput(_columns(lines, source.name), _owner(row for _, row in rows), 0)


def _content(row: InputRow, name: str) -> tuple[int, Mapping[str, Any]]:
    if row.problem or not isinstance(row.data, Mapping):
        raise InvalidRequest(f"{name} row {row.number}: {row.problem or 'not an object'}")
    return row.number, row.data


def _is_result(row: Mapping[str, Any]) -> bool:
    return "key" in row and "status" in row


def _left_out(rows: list[tuple[int, Mapping[str, Any]]], lines: list[_Line]) -> int:
    return len(rows) - sum(len(line.sides) for line in lines)


def _owner(rows: Iterable[Mapping[str, Any]]) -> str | None:
    versions = sorted({str(row["scoring_version"]) for row in rows if "scoring_version" in row})
    if len(versions) > 1:
        raise InvalidRequest(f"The rows are of several scoring versions: {', '.join(versions[:5])}: keep those of one.")
    return versions[0] if versions else None


# --- rows that hold everything ------------------------------------------------------------------


def _line(number: int, row: Mapping[str, Any], scale: tuple[float, float]) -> _Line:
    group = next((str(row[name]) for name in _GROUPS if row.get(name) not in (None, "")), f"row {number}")
    if "winner" in row:
        winner = row["winner"]
        if winner not in _WINNERS:
            raise InvalidRequest(f"row {number}: winner must be a, b or tie")
        sides = (_rewards(number, row, "_a"), _rewards(number, row, "_b"))
        return _Line(sides, _WINNERS[winner], group)
    label = None if row.get("label") in (None, "") else _label(number, row["label"], scale)
    return _Line((_rewards(number, row, ""),), label, group)


def _rewards(number: int, row: Mapping[str, Any], side: str) -> dict[str, float]:
    several = row.get(f"rewards{side}")
    if isinstance(several, Mapping) and several:
        return {str(name): _number(number, value, f"the reward {str(name)[:40]!r}") for name, value in several.items()}
    if f"reward{side}" not in row:
        raise InvalidRequest(f"row {number}: there is no reward{side}")
    return {DEFAULT_REWARD: _number(number, row[f"reward{side}"], f"reward{side}")}


def _label(number: int, value: object, scale: tuple[float, float]) -> float:
    low, high = scale
    label = (_number(number, value, "the label") - low) / (high - low)
    if not 0.0 <= label <= 1.0:
        raise InvalidRequest(f"row {number}: the label does not lie between {low:g} and {high:g} (see --scale)")
    return label


def _number(number: int, value: object, column: str) -> float:
    if isinstance(value, str):  # CSV
        try:
            value = float(value)
        except ValueError:
            value = None
    if not isinstance(value, int | float) or not isfinite(value):
        raise InvalidRequest(f"row {number}: {column} is not a number")
    return float(value)


# --- results of labs evaluate -------------------------------------------------------------------


def _labels(path: Path | None, scale: tuple[float, float]) -> dict[tuple[str, str], float] | None:
    """Labels by what they are joined by and its value."""
    if path is None:
        return None
    labels: dict[tuple[str, str], float] = {}
    for row in read_rows(path):
        number, content = _content(row, path.name)
        name = next((name for name in _JOINED_BY if content.get(name) not in (None, "")), None)
        if name is None or "label" not in content:
            raise InvalidRequest(f"{path.name} row {number}: needs a label and one of {', '.join(_JOINED_BY)}")
        if (name, str(content[name])) in labels:
            raise InvalidRequest(f"{path.name} row {number}: a second label for the same {name}")
        labels[name, str(content[name])] = _label(number, content["label"], scale)
    return labels


def _results(
    scored: list[tuple[int, Mapping[str, Any]]], labels: Mapping[tuple[str, str], float] | None
) -> list[_Line]:
    if any(row.get("part") in ("chosen", "rejected") for _, row in scored):
        return _chosen_and_rejected(scored)
    lines = []
    for number, row in scored:
        keys = [(name, str(row[name])) for name in _JOINED_BY if name in row]
        label = None if labels is None else next((labels[key] for key in keys if key in labels), None)
        if labels is None or label is not None:
            lines.append(_Line((_rewards(number, row, ""),), label, f"row {row.get('row', number)}"))
    if scored and not lines:
        raise InvalidRequest("No result has a label: the two files share no key, id or row.")
    return lines


def _chosen_and_rejected(scored: list[tuple[int, Mapping[str, Any]]]) -> list[_Line]:
    rows: dict[object, dict[str, Mapping[str, float]]] = defaultdict(dict)
    for number, row in scored:
        rows[row.get("row")][str(row.get("part"))] = _rewards(number, row, "")
    whole = [(name, parts) for name, parts in rows.items() if {"chosen", "rejected"} <= set(parts)]
    return [
        # Sides take turns: with the chosen answer first in all pairs there would be but one class of winners.
        _Line((parts["chosen"], parts["rejected"]), 1.0, f"row {name}")
        if place % 2 == 0
        else _Line((parts["rejected"], parts["chosen"]), 0.0, f"row {name}")
        for place, (name, parts) in enumerate(whole)
    ]


# --- columns ------------------------------------------------------------------------------------


def _columns(lines: list[_Line], source: str) -> LabelledRows | JudgedPairs:
    if not lines:
        raise InvalidRequest(f"{source} holds nothing that was scored.")
    sides = len(lines[0].sides)
    if any(len(line.sides) != sides for line in lines):
        raise InvalidRequest(f"{source} mixes rows and pairs.")
    names = set(lines[0].sides[0])
    for number, line in enumerate(lines, 1):
        if any(set(side) != names for side in line.sides):
            raise InvalidRequest(f"{source}: rows name different rewards, first at entry {number}.")
    columns = [{name: _array([line.sides[k][name] for line in lines]) for name in names} for k in range(sides)]
    groups = tuple(line.group for line in lines)
    labels = [line.label for line in lines if line.label is not None]
    if 0 < len(labels) < len(lines):
        raise InvalidRequest(f"{source}: {len(lines) - len(labels)} of {len(lines)} rows have no label.")
    if sides == 2:
        return JudgedPairs(columns[0], columns[1], _array(labels), groups)
    return LabelledRows(columns[0], _array(labels) if labels else None, groups)


def _array(values: list[float]) -> Floats:
    return np.array(values, dtype=np.float64)
