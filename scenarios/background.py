"""The background of a scenario's persona: `<slug>.background.yaml` beside its file.

Small true things about the persona's life and wishes, with the questions and offers they answer. They make the talk a
talk with a person. No criterion can name them, so an agent earns nothing by asking.

What any agent asks or offers ("Do you have any questions?") is in `background.yaml` for all collections and in
`collection.background.yaml` for one. A scenario's own entry goes before the common one of the same id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from pydantic import Field

from personas.case.compiled import merged_topics
from personas.case.private import PrivateModel
from personas.case.schema import Background, Denial, Fact, PersonaCase, Tier, Topic, named_in
from personas.text.wording import grams, normal
from scenarios.rules import NodeFinding, in_file
from scenarios.schema import ScenarioSecrets
from scenarios.whole import with_groups
from scenarios.yamlfile import Document, ScenarioFileError, load, read_document, validated

SUFFIX = ".background.yaml"
OF_COLLECTION = "collection.background.yaml"
_OF_ALL = Path(__file__).parent / "background.yaml"


class BackgroundFile(PrivateModel):
    """`<slug>.background.yaml`."""

    background: tuple[Background, ...] = Field(min_length=1, max_length=80)


def load_background(
    path: Path,
    secrets: ScenarioSecrets,
    topics: Mapping[str, Topic],
    name: str | None = None,
    change: Callable[[Document], Document] | None = None,
) -> tuple[Background, ...]:
    """The entries of a file; none if there is no such file.

    Args:
        path: the file.
        secrets: the private half of its scenario.
        topics: those of its collection.
        name: what messages call the file.
        change: makes the file that of a variant.

    Raises:
        ScenarioFileError: an entry does not fit the case; names file and line.
    """
    if not path.is_file():
        return ()
    document = read_document(path, name or path.name)
    document = document if change is None else change(document)
    document.data = with_groups(document.data, BackgroundFile, secrets.fact_groups)
    file = validated(document, BackgroundFile)
    findings = in_file(document, _findings(file.background, _Held.of(secrets.persona, topics)))
    if findings:
        raise ScenarioFileError(findings)
    return file.background


@cache
def background_of_all() -> tuple[Background, ...]:
    """The background that any persona answers from, of any collection."""
    return load(_OF_ALL, BackgroundFile, _OF_ALL.name)[0].background


def load_common(path: Path, name: str | None = None) -> tuple[Background, ...]:
    """The background that any persona of a collection answers from: its own, then that for all, some of the same ids.

    Args:
        path: the file of the collection; there may be none.
        name: what messages call the file.

    Raises:
        ScenarioFileError: the file is broken, or uses an id twice; names file and line.
    """
    if not path.is_file():
        return background_of_all()
    file, document = load(path, BackgroundFile, name or path.name)
    count = Counter(entry.id for entry in file.background)
    twice = [i for i, entry in enumerate(file.background) if count[entry.id] > 1]
    if twice:
        raise ScenarioFileError(
            [document.finding(("background", i, "id"), _twice(file.background[i].id)) for i in twice]
        )
    return (*file.background, *background_of_all())


def fitting(
    common: Iterable[Background], own: Iterable[Background], case: PersonaCase, topics: Mapping[str, Topic]
) -> tuple[Background, ...]:
    """The part of a common background that suits a case: what its own background could hold beside its own entries."""
    held = _Held.of(case, topics)
    taken = {entry.id for entry in own}
    found: list[Background] = []
    for entry in (_told_now(entry, held.items) for entry in common):
        # Of two of one id, the second is for the cases that the first does not suit.
        if entry.id not in taken and not any(_findings((entry,), held)):
            taken.add(entry.id)
            found.append(entry)
    return tuple(found)


def waits_for(entries: Iterable[Background]) -> dict[str, str]:
    """The facts and denials that entries wait for -> one entry that does."""
    waiting = ((entry, (*entry.after, *(entry.later.after if entry.later else ()))) for entry in entries)
    return {name: entry.id for entry, needs in waiting for name in named_in(needs)}


def _told_now(entry: Background, held: Container[str]) -> Background:
    """The entry, without what is said later if that waits for a fact that the case has not."""
    waits = entry.later is not None and any(name not in held for name in named_in(entry.later.after))
    return entry.model_copy(update={"later": None}) if waits else entry


def _twice(name: str) -> str:
    return f"the id `{name}` is used twice: choose another"


@dataclass(frozen=True, slots=True)
class _Telling:
    """What a text gives away."""

    lines: tuple[str, ...]
    """Whole, as `normal` has them."""
    grams: frozenset[str]
    """Four content words in a row."""

    @classmethod
    def of(cls, *texts: str) -> _Telling:
        return cls(tuple(map(normal, texts)), frozenset[str]().union(*map(grams, texts)))

    def repeated_in(self, other: _Telling) -> bool:
        """True if the other contains one of these lines, or four of their content words in a row."""
        return not self.grams.isdisjoint(other.grams) or any(
            mine in line for line in other.lines for mine in self.lines
        )


_told_by_line = lru_cache(maxsize=8192)(_Telling.of)
"""The lines of a common background are held against every case."""


@dataclass(frozen=True, slots=True)
class _Held:
    """What the background of a case has to fit."""

    items: Mapping[str, Fact | Denial]
    commitments: tuple[str, ...]
    asked: Mapping[str, str]
    """Example question, as `normal` has it -> the topic it is of."""
    secrets: Mapping[str, _Telling]
    """What the persona does not say by itself."""

    @classmethod
    def of(cls, case: PersonaCase, topics: Mapping[str, Topic]) -> _Held:
        every: tuple[Fact | Denial, ...] = (*case.facts, *case.denials)
        return cls(
            items={item.id: item for item in every},
            commitments=tuple(each.id for each in case.commitments),
            asked={normal(ask): name for name, texts in merged_topics(case, topics).items() for ask in texts.asks},
            secrets={item.id: _Telling.of(*_wordings(item)) for item in every if not _is_volunteered(item)},
        )


def _findings(entries: tuple[Background, ...], held: _Held) -> Iterator[NodeFinding]:
    count = Counter([*held.items, *held.commitments, *(entry.id for entry in entries)])
    for i, entry in enumerate(entries):
        place = ("background", i)
        if count[entry.id] > 1:
            yield NodeFinding((*place, "id"), _twice(entry.id))
        for where, needs in (("after", entry.after), ("later", entry.later.after if entry.later else ())):
            for name in named_in(needs):
                if name not in held.items:
                    yield NodeFinding((*place, where), f"there is no fact or denial `{name}`: correct the id")
        for j, ask in enumerate(entry.asks):
            if owner := held.asked.get(normal(ask)):
                yield NodeFinding((*place, "asks", j), f"`{owner}` has this example question: remove it here")
        known = {need for need in entry.after if isinstance(need, str)}
        yield from _repeated(held.secrets, known, entry.says, (*place, "says"))
        if entry.later:
            then = {need for need in entry.later.after if isinstance(need, str)}
            yield from _repeated(held.secrets, known | then, entry.later.says, (*place, "later", "says"))


def _repeated(
    secrets: Mapping[str, _Telling], known: Container[str], says: Sequence[str], place: tuple[str | int, ...]
) -> Iterator[NodeFinding]:
    """The places where answers give away what does not have to be said before them."""
    for j, line in enumerate(says):
        said = _told_by_line(line)
        for name, secret in secrets.items():
            if name not in known and secret.repeated_in(said):
                told = f"repeats `{name}`: say it in other words, or name `{name}` in `after`"
                yield NodeFinding((*place, j), told)


def _is_volunteered(item: Fact | Denial) -> bool:
    return isinstance(item, Fact) and item.tier is Tier.VOLUNTEERED


def _wordings(item: Fact | Denial) -> tuple[str, ...]:
    return (*item.says, item.again) if isinstance(item, Fact) and item.again else tuple(item.says)
