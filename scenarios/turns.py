"""Labelled agent turns of a scenario: `<slug>.turns.jsonl` beside its YAML file, one JSON object a line.

They train the reader, lend their sentences to the case as examples, and an eighth of them, chosen by a hash, is kept
aside: on those `labs scenarios check` measures how well the persona understands.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from personas.case.compiled import LabelledExamples
from personas.case.schema import PersonaCase
from personas.text.sentences import sentences
from personas.text.wording import content_stems

SUFFIX = ".turns.jsonl"
BACKGROUND_KIND = "background"
"""The kind of the turns that a persona answers from its background; they are for measuring alone."""
KINDS = frozenset({"specific", "double", "open", "foreign", "social", "summary", "commit", "near_commit"})
KEPT_ASIDE = 8
"""One turn in so many is kept aside."""
EXAMPLES_A_TOPIC = 8
LONGEST_EXAMPLE = 200
_KEYS = frozenset({"turn", "asks", "commits", "kind", "style", "before", "told", "near", "stance", "quotes", "acts"})


@dataclass(frozen=True, slots=True)
class LabelledTurn:
    """One agent turn and what a sensible person would make of it."""

    turn: str
    asks: tuple[str, ...]
    """Facts and denials it asks about; of an open invitation, those that would be apt. Of a turn about the background,
    its entries."""
    commits: tuple[str, ...]
    kind: str
    style: str = "plain"
    line: str = ""
    """What the persona said last before it."""
    told: tuple[str, ...] = ()
    near: str | None = None
    """Of a near miss: the commitment it must not be taken for."""
    stance: str | None = None
    quotes: Mapping[str, str] = field(default_factory=dict)
    """Commitment -> the sentence that makes it."""
    acts: tuple[str, ...] = ()
    number: int = field(default=0, compare=False)
    """Its line in the file, from 1."""

    @property
    def kept_aside(self) -> bool:
        """True if it is for measuring alone."""
        return int.from_bytes(hashlib.blake2b(self.turn.encode(), digest_size=4).digest(), "big") % KEPT_ASIDE == 0


def load_turns(path: Path) -> tuple[LabelledTurn, ...]:
    """The turns of a file; none if there is no such file.

    Raises:
        ValueError: a line is not what it should be; says which.
    """
    if not path.is_file():
        return ()
    lines = path.read_text(encoding="utf-8").splitlines()
    return tuple(_read(path, number, line) for number, line in enumerate(lines, 1) if line.strip())


def _read(path: Path, number: int, line: str) -> LabelledTurn:
    try:
        row: dict[str, Any] = json.loads(line)
        _check(row)
        said = [text for role, text in row.get("before", ()) if role == "persona"]
        return LabelledTurn(
            turn=row["turn"],
            asks=tuple(row["asks"]),
            commits=tuple(row["commits"]),
            kind=row["kind"],
            style=row.get("style", "plain"),
            line=said[-1] if said else "",
            told=tuple(row.get("told", ())),
            near=row.get("near"),
            stance=row.get("stance"),
            quotes=row.get("quotes", {}),
            acts=tuple(row.get("acts", ())),
            number=number,
        )
    except (KeyError, TypeError, ValueError) as error:
        reason = f"`{error.args[0]}` is missing" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{path.name}, line {number}: {reason}") from None


def _check(row: Mapping[str, Any]) -> None:
    if unknown := set(row) - _KEYS:
        raise ValueError(f"unknown key `{min(unknown)}`")
    if row["kind"] not in {*KINDS, BACKGROUND_KIND}:
        raise ValueError(f"unknown kind `{row['kind']}`")


def names_of(turn: LabelledTurn) -> set[str]:
    """All facts, denials and commitments that the labels of a turn name."""
    return {*turn.asks, *turn.told, *turn.commits, *([] if turn.near is None else [turn.near])}


def unknown_names(persona: PersonaCase, background: Collection[str], turn: LabelledTurn) -> list[str]:
    """Names in a turn's labels that the case does not have, in order.

    Args:
        persona: facts, denials and commitments.
        background: the ids of what the persona answers beside the matter.
        turn: the labels.
    """
    topics = {*(fact.id for fact in persona.facts), *(denial.id for denial in persona.denials)}
    asked = set(background) if turn.kind == BACKGROUND_KIND else topics
    commitments = {each.id for each in persona.commitments}
    made = {*turn.commits, *([] if turn.near is None else [turn.near])}
    return sorted((set(turn.asks) - asked) | (set(turn.told) - topics) | (made - commitments))


def quote_of(turn: LabelledTurn, commitment: str) -> str | None:
    """The sentence of a turn that makes a commitment, if the labels say which."""
    said = sentences(turn.turn)
    quoted = turn.quotes.get(commitment)
    if quoted is None:
        return said[0] if len(said) == 1 else None
    return next((s for s in said if s in quoted or quoted in s), None)


def question_of(turn: LabelledTurn) -> str | None:
    """The sentence of a turn that asks the one thing it asks for; None where that cannot be told."""
    if turn.kind != "specific" or len(turn.asks) != 1:
        return None
    said = sentences(turn.turn)
    asking = [s for s in said if s.endswith("?")] or list(said[-1:])
    if not asking or len(asking[-1]) > LONGEST_EXAMPLE:
        return None
    return None if turn.line and len(content_stems(asking[-1])) <= 2 else asking[-1]


def examples_of(turns: Sequence[LabelledTurn]) -> LabelledExamples:
    """The examples that a case takes over from its labelled turns, but for those kept aside."""
    training = [turn for turn in turns if not turn.kept_aside]
    asked = ((turn.asks[0], question) for turn in training if (question := question_of(turn)))
    made = ((name, quote) for turn in training for name in turn.commits if (quote := quote_of(turn, name)))
    return LabelledExamples(_by_name(asked), _by_name(made))


def _by_name(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for name, text in pairs:
        found.setdefault(name, []).append(text)
    return {name: tuple(dict.fromkeys(texts))[:EXAMPLES_A_TOPIC] for name, texts in found.items()}


def files_below(root: Path) -> Iterator[Path]:
    """All files of labelled turns below a folder of collections."""
    yield from sorted(root.glob(f"*/*{SUFFIX}"))
