"""Reads labelled conversations and preference pairs from a file, each row strictly.

    labelled    {"messages": [...], "score": 0.7}     or "scores": {"Empathy": 0.5, ...}, or "ratings": [0.6, 0.8]
    pairs       {"chosen": [...], "rejected": [...]}  messages; with "prompt" (TRL) they follow it; or plain texts
                {"chosen": "\\n\\nHuman: ...", ...}     the transcripts of hh-rlhf
                {"input": {"messages": [...]}, "preferred_output": [...], "non_preferred_output": [...]}  OpenAI
    others      the rows of LLMBar and MRBench, see `judged_sets`
    any row     "scenario": text, "group" or "dialogue_id": name, "agent_role": "user"
    labelled    also "system" (or "author", "model"): who wrote the agent's words; the tutors of MRBench are such
    pairs also  "chosen_system" and "rejected_system" (or "…_model");
                "margin": how much better, 0 is a tie; "tie": true

Labels are used as they are: a wrong one would teach the model something wrong, so the first row that cannot be read
ends the reading, with its number, unless some may be left out; they are then told, each with what is wrong. Messages
name no role but the ones of chat models.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, Literal, get_args

from reward_server.errors import InvalidRequest, LabsError
from reward_server.fitting.reward_model.judged_sets import (
    ANNOTATED,
    ANSWERS,
    annotated_replies,
    better_and_worse,
    chosen_and_rejected,
)
from reward_server.offline.formats import BadRow, NoAgent, Speakers, convert
from reward_server.offline.rows import InputRow, read_rows
from reward_server.reward_models.conversation import Conversation
from reward_server.reward_models.dataset import OVERALL, Dataset, Labelled, PreferredPair, fair_label, grouped
from reward_server.reward_models.recorded import conversation_from
from scenarios.spelling import counted

Ties = Literal["drop", "half"]
Fields = Mapping[str, Any]
_LABELS = ("score", "reward", "scores", "ratings")
_GROUPS = ("group", "dialogue_id", "conversation_id")
_SYSTEMS = ("system", "author", "model")
_MAX_NAME = 200
_ROWS = (".jsonl", ".jsonl.gz", ".json", ".csv")
_KNOWN = (
    "no known form: give `messages` with `score`, `scores` or `ratings`, or `chosen` and `rejected`, or "
    "`preferred_output` and `non_preferred_output`"
)


@dataclass(frozen=True)
class RowOptions:
    """The options by which the rows of a file are understood."""

    scale: tuple[float, float] = (0.0, 1.0)
    """What labels mean 0 and 1."""
    ties: Ties = "drop"
    """Pairs without a winner: left out, or learned as one half."""
    skip_bad: int = 0
    """So many rows that cannot be read may be left out."""

    def __post_init__(self) -> None:
        low, high = self.scale
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise InvalidRequest("--scale takes two numbers, the lower one first")
        if self.ties not in get_args(Ties):
            raise InvalidRequest("--ties must be drop or half")


def read_dataset(path: Path, reading: RowOptions) -> Dataset:
    """All rows of a JSONL, JSON or CSV file.

    Raises:
        InvalidRequest: a row cannot be read (its number is said), or there is none.
    """
    labelled: list[Labelled] = []
    preferred: list[PreferredPair] = []
    ties = 0
    bad: dict[str, list[int]] = {}
    skipped = 0
    for row in read_rows(path):
        try:
            rows = _read(row, reading)
        except (BadRow, ValueError, LabsError) as error:
            bad.setdefault(_said(error), []).append(row.number)
            skipped += 1
            if skipped > reading.skip_bad:
                raise InvalidRequest(_too_bad(bad, reading.skip_bad)) from None
            continue
        for labelled_row in rows:
            if isinstance(labelled_row, Labelled):
                labelled.append(labelled_row)
            elif labelled_row.tie and reading.ties == "drop":
                ties += 1
            else:
                preferred.append(labelled_row)
    if not labelled and not preferred:
        raise InvalidRequest(f"{path.name} holds no usable row" + (", only ties" if ties else ""))
    notes: tuple[str, ...] = (f"{counted(ties, 'tie')} left out",) if ties else ()
    notes += (f"{counted(skipped, 'row')} left out that cannot be read: {_listed(bad)}",) if bad else ()
    return grouped(Dataset(tuple(labelled), _evenly_weighted(preferred), notes=notes))


def _too_bad(bad: Mapping[str, Sequence[int]], allowed: int) -> str:
    if not allowed:
        return _listed(bad)
    return f"more than {counted(allowed, 'row')} cannot be read (--skip-bad): {_listed(bad)}"


def _listed(bad: Mapping[str, Sequence[int]]) -> str:
    """Each thing that is wrong once, behind the numbers of its rows."""
    return "; ".join(
        f"{'row' if len(numbers) == 1 else 'rows'} {', '.join(map(str, numbers))}: {wrong}"
        for wrong, numbers in bad.items()
    )


def _read(row: InputRow, reading: RowOptions) -> Sequence[Labelled | PreferredPair]:
    if row.problem:
        raise BadRow(row.problem)
    if not isinstance(row.data, Mapping):
        raise BadRow("a row must be an object")
    data: Fields = row.data
    if "messages" in data:
        return [_labelled(data, row.number, reading)]
    if set(data) >= ANNOTATED:
        return _annotated(data, row.number)
    if (
        set(data) >= ANSWERS
        or {"chosen", "rejected"} <= set(data)
        or {"preferred_output", "non_preferred_output"} <= set(data)
    ):
        return [_preferred(data, row.number)]
    raise BadRow(_KNOWN)


# --- labels ---------------------------------------------------------------------------------------


def _labelled(data: Fields, number: int, reading: RowOptions) -> Labelled:
    given = [name for name in _LABELS if data.get(name) is not None]
    if not given:
        raise BadRow("no label: give `score`, `scores` or `ratings`")
    conversation = _conversation(data["messages"], data)
    ratings = tuple(_label(value, "ratings", reading) for value in _list(data.get("ratings"), "ratings"))
    scores = _scores(data, ratings, reading)
    return Labelled(conversation, scores, _group(data), number, ratings, _named(data, *_SYSTEMS))


def _scores(data: Fields, ratings: tuple[float, ...], reading: RowOptions) -> dict[str, float]:
    """Labels by head; the overall one is that of the row, or the mean of its raters, or of its dimensions."""
    named = data.get("scores") or {}
    if not isinstance(named, Mapping):
        raise BadRow("`scores` must be an object of numbers by dimension")
    scores = {_name(name): _label(value, f"scores.{_name(name)}", reading) for name, value in named.items()}
    own = data.get("score") if data.get("score") is not None else data.get("reward")
    if own is not None:
        scores[OVERALL] = _label(own, "score", reading)
    elif ratings:
        scores[OVERALL] = sum(ratings) / len(ratings)
    elif scores and OVERALL not in scores:
        scores[OVERALL] = sum(scores.values()) / len(scores)
    if not scores:
        raise BadRow("no label: `scores` or `ratings` is empty")
    return scores


def _label(value: Any, where: str, reading: RowOptions) -> float:
    try:
        return fair_label(value, *reading.scale)
    except ValueError as error:
        raise BadRow(f"`{where}` {error}") from None


def _name(name: object) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= _MAX_NAME or not name.isprintable():
        raise BadRow("the name of a dimension must be a short printable text")
    return name


def _annotated(data: Fields, number: int) -> list[Labelled]:
    """One labelled conversation per reply; they share a dialogue, so they stay on one side of a split."""
    group = _group(data) or f"row {number}"
    return [
        Labelled(
            _conversation(messages, data),
            {OVERALL: sum(scores.values()) / len(scores), **scores},
            group,
            number,
            system=system,
        )
        for system, messages, scores in annotated_replies(data)
    ]


# --- pairs ----------------------------------------------------------------------------------------


def _preferred(data: Fields, number: int) -> PreferredPair:
    chosen, rejected = _sides(data)
    rejected = _sharing(rejected, chosen)
    if not (_speaks(chosen) or _speaks(rejected)):
        raise BadRow("the agent says nothing on either side")
    margin = data.get("margin")
    if margin is not None and (isinstance(margin, bool) or not isinstance(margin, int | float)):
        raise BadRow("`margin` is not a number")
    if margin is not None and not (math.isfinite(margin) and margin >= 0):
        raise BadRow("`margin` must be a finite number that is not negative: it says how much better `chosen` is")
    tie = data.get("tie") is True or margin == 0
    if not tie and chosen.digest == rejected.digest:
        raise BadRow("both sides are the same conversation: there is nothing to prefer")
    weight = float(margin) if margin else 1.0
    # A pair belongs to the prompt it answers, whatever follows.
    systems = (_named(data, "chosen_system", "chosen_model"), _named(data, "rejected_system", "rejected_model"))
    return PreferredPair(chosen, rejected, _group(data), number, weight, tie, systems)


def _sharing(side: Conversation, other: Conversation) -> Conversation:
    """The same with the other's messages in place of equal ones: what both begin with is in memory once."""
    common = [theirs if theirs == own else own for own, theirs in zip(side.turns, other.turns, strict=False)]
    return replace(side, turns=(*common, *side.turns[len(common) :]))


def _sides(data: Fields) -> tuple[Conversation, Conversation]:
    if "preferred_output" in data:
        source = data.get("input")
        before = _list(source.get("messages") if isinstance(source, Mapping) else None, "input.messages")
        return (
            _conversation([*before, *_list(data["preferred_output"], "preferred_output")], data),
            _conversation([*before, *_list(data["non_preferred_output"], "non_preferred_output")], data),
        )
    if "output_1" in data:
        better, worse = better_and_worse(data)
        return _conversation(better, data), _conversation(worse, data)
    chosen, rejected = data["chosen"], data["rejected"]
    if isinstance(chosen, str) and isinstance(rejected, str):
        if data.get("prompt") is None:
            first, second = chosen_and_rejected(data)
            return _silent_or_not(first, data), _silent_or_not(second, data)
        chosen, rejected = ([{"role": "assistant", "content": text}] for text in (chosen, rejected))
    before = _prompt(data.get("prompt"))
    return (
        _conversation([*before, *_list(chosen, "chosen")], data),
        _conversation([*before, *_list(rejected, "rejected")], data),
    )


def _prompt(prompt: Any) -> list[Any]:
    if isinstance(prompt, str):
        return [{"role": "user", "content": prompt}]
    return _list(prompt, "prompt")


def _evenly_weighted(pairs: Sequence[PreferredPair]) -> tuple[PreferredPair, ...]:
    """Margins as weights around 1, none more than four times the median or less than a quarter of it."""
    margins = [pair.weight for pair in pairs if not pair.tie]
    if not margins:
        return tuple(pairs)
    middle = median(margins)
    return tuple(replace(pair, weight=1.0 if pair.tie else min(4.0, max(0.25, pair.weight / middle))) for pair in pairs)


# --- both -----------------------------------------------------------------------------------------


def _conversation(messages: Any, data: Fields) -> Conversation:
    conversation = _silent_or_not(messages, data)
    if not _speaks(conversation):
        raise BadRow("the agent says nothing")
    return conversation


def _speaks(conversation: Conversation) -> bool:
    return any(turn.text.strip() for turn in conversation.turns if turn.party == "agent")


def _silent_or_not(messages: Any, data: Fields) -> Conversation:
    """In a pair, saying nothing may be the better or the worse thing to do."""
    role, scenario = data.get("agent_role", "assistant"), data.get("scenario") or ""
    if role not in ("assistant", "user"):
        raise BadRow("`agent_role` must be assistant or user")
    if not isinstance(scenario, str):
        raise BadRow("`scenario` must be a text")
    speakers = Speakers(("user",) if role == "user" else ())
    try:
        [conversation] = convert({"messages": _list(messages, "messages", needed=True)}, "openai", speakers)
    except NoAgent as error:
        raise BadRow(f"{error} (set `agent_role`: assistant or user)") from None
    return conversation_from(conversation.messages, "assistant", scenario)


def _group(data: Fields) -> str:
    return sys.intern(_named(data, *_GROUPS))


def _named(data: Fields, *fields: str) -> str:
    """The first of these fields that is given, as a name; empty where none is."""
    given = next((data[name] for name in fields if data.get(name) is not None), "")
    if isinstance(given, bool) or not isinstance(given, str | int):
        raise BadRow(f"`{fields[0]}` must be a name or a number")
    return str(given)


def _list(value: Any, where: str, *, needed: bool = False) -> list[Any]:
    if value is None and not needed:
        return []
    if not isinstance(value, list | tuple) or (needed and not value):
        raise BadRow(f"`{where}` must be a list" + (" with at least one message" if needed else ""))
    return list(value)


def _said(error: Exception) -> str:
    """The message without its full stop: it goes on a line with the row's number."""
    if not isinstance(error, LabsError):
        return str(error)
    return error.message[:1].lower() + error.message[1:].rstrip(".")


def read_folder(folder: Path, reading: RowOptions) -> Dataset:
    """The rows of all files in a folder that hold rows of a known form; no row of another is looked at.

    Raises:
        InvalidRequest: there is none.
    """
    datasets: list[Dataset] = []
    for path in sorted(file for file in folder.rglob("*") if file.name.lower().endswith(_ROWS)):
        with suppress(InvalidRequest):
            datasets.append(read_dataset(path, reading))
    if not datasets:
        raise InvalidRequest(f"{folder} holds no file of labelled conversations or pairs ({', '.join(_ROWS)})")
    return Dataset(
        tuple(
            replace(row, group=f"{number}/{row.group}")
            for number, dataset in enumerate(datasets)
            for row in dataset.labelled
        ),
        tuple(
            replace(row, group=f"{number}/{row.group}")
            for number, dataset in enumerate(datasets)
            for row in dataset.preferred
        ),
    )
