"""Reads what judges are measured on.

Rows hold conversations (`messages`, with `collection_slug` and `scenario_slug` unless the command names them) or scores
that were made before (`scores`: {judge: value}), with a human `label`; or pairs of either (`response_a`, `response_b`
or `scores_a`, `scores_b`) with a human `winner`. Pairs may bring what pairwise judges said in both orders: `winners`
and `winners_swapped`, {judge: a|b|tie}, each naming the sides as they stand in the row. A row may name its `group`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from reward_server.errors import InvalidRequest
from reward_server.offline.rows import InputRow, read_rows
from reward_server.preferences.figures import WINNERS

_GROUPS = ("group", "dialogue_id", "dialogue")


@dataclass(frozen=True, repr=False)
class ConversationSide:
    """A conversation, or the scores it was given before."""

    collection: str | None = None
    scenario: str | None = None
    messages: tuple[Mapping[str, Any], ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class LabelledEntry:
    """A row: one side with a label, or two with a winner."""

    sides: tuple[ConversationSide, ...]
    group: str
    label: float | None = None
    """In [0, 1]."""
    winner: float | None = None
    """1 for the first side, 0 for the second, 0.5 for a tie."""
    winners: Mapping[str, str] = field(default_factory=dict)
    swapped: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RowDefaults:
    """The defaults for what rows do not say themselves."""

    collection: str | None = None
    scenario: str | None = None
    scale: tuple[float, float] = (0.0, 1.0)
    """The labels that mean 0 and 1."""


def read(path: Path, reading: RowDefaults) -> list[LabelledEntry]:
    """The rows of a file; all of one kind.

    Raises:
        InvalidRequest: a row cannot be read or fits no form, or rows are of several kinds.
    """
    if not reading.scale[0] < reading.scale[1]:
        raise InvalidRequest("The label that means 0 must be lower than the one that means 1.")
    entries = [_entry(row, reading) for row in read_rows(path)]
    if not entries:
        raise InvalidRequest(f"{path.name} has no rows.")
    kinds = {(len(entry.sides), bool(entry.sides[0].messages)) for entry in entries}
    if len(kinds) > 1:
        raise InvalidRequest(
            f"{path.name} mixes single rows with pairs, or conversations with scores: use one file for each."
        )
    names = {frozenset(side.scores) for entry in entries for side in entry.sides}
    if len(names) > 1:
        raise InvalidRequest(f"{path.name}: all rows must have scores of the same judges.")
    return entries


def _entry(row: InputRow, reading: RowDefaults) -> LabelledEntry:
    if row.problem or not isinstance(row.data, Mapping):
        raise InvalidRequest(f"row {row.number}: {row.problem or 'a row must be an object'}")
    data = row.data
    group = next((str(data[name]) for name in _GROUPS if data.get(name) not in (None, "")), f"row {row.number}")
    if "winner" in data or "response_a" in data or "scores_a" in data:
        if data.get("winner") not in WINNERS:
            raise InvalidRequest(f"row {row.number}: winner must be a, b or tie")
        sides = (_side(row.number, data, "_a", reading), _side(row.number, data, "_b", reading))
        spoken = [_said(row.number, data, name) for name in ("winners", "winners_swapped")]
        return LabelledEntry(sides, group, None, WINNERS[data["winner"]], *spoken)
    return LabelledEntry(
        (_side(row.number, data, "", reading),), group, _label(row.number, data.get("label"), reading.scale)
    )


def _side(number: int, data: Mapping[str, Any], suffix: str, reading: RowDefaults) -> ConversationSide:
    scores = data.get(f"scores{suffix}")
    if isinstance(scores, Mapping) and scores:
        return ConversationSide(scores={str(name): _number(number, value) for name, value in scores.items()})
    holder = data.get(f"response{suffix}") if suffix else data
    messages = holder.get("messages") if isinstance(holder, Mapping) else None
    if not isinstance(messages, Sequence) or isinstance(messages, str) or not messages:
        raise InvalidRequest(f"row {number}: needs messages or scores{' on both sides' if suffix else ''}")
    if not all(isinstance(message, Mapping) for message in messages):
        raise InvalidRequest(f"row {number}: a message is not an object")
    collection = data.get("collection_slug", reading.collection)
    scenario = data.get("scenario_slug", reading.scenario)
    if not isinstance(collection, str) or not isinstance(scenario, str):
        raise InvalidRequest(f"row {number}: give --collection and --scenario, or name them in the row")
    return ConversationSide(collection, scenario, tuple(messages))


def _said(number: int, data: Mapping[str, Any], name: str) -> dict[str, str]:
    winners = data.get(name, {})
    if not isinstance(winners, Mapping) or not all(winner in WINNERS for winner in winners.values()):
        raise InvalidRequest(f"row {number}: {name} must say a, b or tie for each judge")
    return {str(judge): str(winner) for judge, winner in winners.items()}


def _label(number: int, value: object, scale: tuple[float, float]) -> float | None:
    if value is None:
        return None
    label = (_number(number, value) - scale[0]) / (scale[1] - scale[0])
    if not 0.0 <= label <= 1.0:
        low, high = scale
        raise InvalidRequest(
            f"row {number}: the label {value} is outside {low:g} to {high:g}; give the scale as --scale LOW HIGH"
        )
    return label


def _number(number: int, value: object) -> float:
    if not isinstance(value, int | float) or not isfinite(value):
        raise InvalidRequest(f"row {number}: scores and labels must be numbers")
    return float(value)
