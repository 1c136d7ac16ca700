"""Data that the reader learns from and is measured on: labelled turns with cases, sentences with acts."""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

from personas.case.compiled import CompiledCase
from scenarios.library import Library, SealedScenario
from scenarios.turns import BACKGROUND_KIND, SUFFIX, LabelledTurn, load_turns, unknown_names

BORROWED = 15
"""Questions of other scenarios that each case is shown as ones about nothing in it."""

SPOKEN_BEFORE, OPENING = 0.65, 0.4
"""Of the turns that name no line before them, this share is read after one; of those, this share after an opening."""


Cases = Library | Mapping[tuple[str, str], CompiledCase]
"""Where rows have their cases from: a library, or the cases themselves by collection and scenario."""


@dataclass(frozen=True, slots=True)
class ReaderRow:
    """A labelled turn and whose case it is read in."""

    collection: str
    scenario: str
    turn: LabelledTurn
    opened: bool = False
    """Whether it is read after the persona's opening, because its label names nothing before it."""

    @property
    def key(self) -> tuple[str, str]:
        """Collection and scenario."""
        return self.collection, self.scenario


@dataclass(frozen=True, slots=True)
class ActRow:
    """A sentence and what it does."""

    collection: str
    text: str
    acts: frozenset[str]
    stance: str


def packaged_turns(root: Path, library: Library) -> list[ReaderRow]:
    """The labelled turns that come with the scenarios of a library."""
    return [
        ReaderRow(collection, scenario, turn)
        for collection, scenario in library.vault.names()
        for turn in load_turns(root / collection / f"{scenario}{SUFFIX}")
    ]


def turns_of_file(path: Path, library: Library) -> list[ReaderRow]:
    """The turns of a file named `<collection>__<scenario>.jsonl`, or of one beside its scenario.

    Raises:
        ValueError: there is no such scenario, or a line is not what it should be or names what the case does not have;
            says which. A label that no reader could hit would only lower the shares.
    """
    if path.name.endswith(SUFFIX):
        collection, scenario = path.parent.name, path.name.removesuffix(SUFFIX)
    else:
        collection, _, scenario = path.stem.partition("__")
    if not (collection and scenario):
        raise ValueError(f"{path}: name the file <collection>__<scenario>.jsonl")
    rows = [ReaderRow(collection, scenario, turn) for turn in load_turns(path)]
    for row in rows:
        opened = _opened(library, row)
        for name in unknown_names(opened.secrets.persona, opened.case.asides, row.turn):
            raise ValueError(f"{path}, line {row.turn.number}: {collection}/{scenario} has no `{name}`")
    return rows


def packaged_acts() -> list[ActRow]:
    """The sentences labelled with acts."""
    folder = files("personas.reading") / "data"
    rows = []
    for file in sorted(folder.iterdir(), key=lambda path: path.name):
        if file.name.endswith(".jsonl"):
            for line in file.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                collection = file.name.removesuffix(".jsonl")
                rows.append(ActRow(collection, row["text"], frozenset(row["acts"]), row.get("stance", "none")))
    return rows


def borrowed(library: Library, rows: Sequence[ReaderRow], seed: int, most: int = BORROWED) -> Iterator[ReaderRow]:
    """Questions of other scenarios as foreign ones: of other collections any, of the same one those about nothing here.

    A case of the same collection holds nothing about a question if its topic is a shared one that the case lacks. Cases
    that have no rows get none: they were left out.
    """
    draw = random.Random(seed)  # noqa: S311 (a sample, no secret)
    shared = {key: _shared_topics(library, key) for key in dict.fromkeys(row.key for row in rows)}
    asking = [row for row in rows if row.turn.kind == "specific" and not row.turn.line]
    for key, own in shared.items():
        held = set(own.values())
        near = [
            row
            for row in asking
            if row.key != key
            and row.collection == key[0]
            and all((topic := shared[row.key].get(name)) and topic not in held for name in row.turn.asks)
        ]
        far = [row for row in asking if row.collection != key[0]]
        for row in (*draw.sample(near, min(len(near), most)), *draw.sample(far, min(len(far), most))):
            yield ReaderRow(*key, replace(row.turn, asks=(), commits=(), kind="foreign"))


def background_rows(cases: Mapping[tuple[str, str], CompiledCase]) -> Iterator[ReaderRow]:
    """The turns that are answered from the background of these cases.

    None of it asks about a topic or makes a commitment. The labels name the entry.
    """
    for key, case in cases.items():
        for entry in case.own_background:
            for ask in entry.examples:
                yield ReaderRow(*key, LabelledTurn(ask, (entry.id,), (), BACKGROUND_KIND))


def after_lines(cases: Cases, rows: Iterable[ReaderRow], seed: int) -> Iterator[ReaderRow]:
    """The rows, most of which are read after something that the persona of the case may have said.

    In play a persona has always spoken before. A turn that names no line was written to be understood without one, so
    it must mean the same after any: an opening, or an answer about something that it does not ask for.
    """
    draw = random.Random(seed)  # noqa: S311 (a sample, no secret)
    for row in rows:
        if row.turn.line or draw.random() >= SPOKEN_BEFORE:
            yield row
            continue
        case = case_of(cases, row)
        others = [line for topic in case.topics if topic.id not in row.turn.asks for line in topic.says]
        lines = case.openings if draw.random() < OPENING or not others else (*others, *case.unknown)
        yield replace(row, turn=replace(row.turn, line=draw.choice(lines)))


def after_opening(cases: Cases, rows: Iterable[ReaderRow]) -> list[ReaderRow]:
    """The rows, those that name no line before them after the first opening of their persona, as in play."""
    return [row if row.turn.line else opened_by(case_of(cases, row), row) for row in rows]


def opened_by(case: CompiledCase, row: ReaderRow) -> ReaderRow:
    """The row after the first opening of its persona."""
    return replace(row, turn=replace(row.turn, line=case.openings[0]), opened=True)


def _shared_topics(library: Library, key: tuple[str, str]) -> Mapping[str, str]:
    persona = library.vault.open(*key).secrets.persona
    facts = {fact.id: fact.topic for fact in persona.facts if fact.topic}
    return facts | {denial.id: denial.topic for denial in persona.denials if denial.topic}


def case_of(cases: Cases, row: ReaderRow) -> CompiledCase:
    """The case a row is read in.

    Raises:
        ValueError: there is no such scenario.
    """
    return _opened(cases, row).case if isinstance(cases, Library) else cases[row.key]


def _opened(library: Library, row: ReaderRow) -> SealedScenario:
    try:
        return library.vault.open(*row.key)
    except KeyError:
        raise ValueError(f"there is no scenario {row.collection}/{row.scenario}") from None


def without(rows: Iterable[ReaderRow], collections: Collection[str]) -> list[ReaderRow]:
    """The rows of all other collections."""
    return [row for row in rows if row.collection not in collections]
