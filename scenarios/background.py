"""The background of a scenario's persona: `<slug>.background.yaml` beside its file.

Small true things about the persona's life and wishes, with the questions and offers they answer. They make the talk a
talk with a person. No criterion can name them, so an agent earns nothing by asking.

What any agent asks or offers ("Do you have any questions?") is in `background.yaml` for all collections and in
`collection.background.yaml` for one. A scenario's own entry goes before the common one of the same id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
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
    findings = in_file(document, _findings(file.background, secrets.persona, topics))
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
    held = {item.id for item in case.facts} | {item.id for item in case.denials}
    taken = {entry.id for entry in own}
    found: list[Background] = []
    for entry in (_told_now(entry, held) for entry in common):
        # Of two of one id, the second is for the cases that the first does not suit.
        if entry.id not in taken and not any(_findings((entry,), case, topics)):
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


def _findings(entries: tuple[Background, ...], case: PersonaCase, topics: Mapping[str, Topic]) -> Iterator[NodeFinding]:
    held: tuple[Fact | Denial, ...] = (*case.facts, *case.denials)
    items = {item.id: item for item in held}
    asked = {normal(ask): name for name, texts in merged_topics(case, topics).items() for ask in texts.asks}
    count = Counter([*items, *(each.id for each in case.commitments), *(entry.id for entry in entries)])
    secrets = {name: item for name, item in items.items() if not _is_volunteered(item)}
    for i, entry in enumerate(entries):
        place = ("background", i)
        if count[entry.id] > 1:
            yield NodeFinding((*place, "id"), _twice(entry.id))
        for where, needs in (("after", entry.after), ("later", entry.later.after if entry.later else ())):
            for name in named_in(needs):
                if name not in items:
                    yield NodeFinding((*place, where), f"there is no fact or denial `{name}`: correct the id")
        for j, ask in enumerate(entry.asks):
            if owner := asked.get(normal(ask)):
                yield NodeFinding((*place, "asks", j), f"`{owner}` has this example question: remove it here")
        known = {need for need in entry.after if isinstance(need, str)}
        yield from _repeated(secrets, known, entry.says, (*place, "says"))
        if entry.later:
            then = {need for need in entry.later.after if isinstance(need, str)}
            yield from _repeated(secrets, known | then, entry.later.says, (*place, "later", "says"))


def _repeated(
    secrets: Mapping[str, Fact | Denial], known: Container[str], says: Sequence[str], place: tuple[str | int, ...]
) -> Iterator[NodeFinding]:
    """The places where answers give away what does not have to be said before them."""
    for j, line in enumerate(says):
        for name, item in secrets.items():
            if name not in known and _repeats(line, item):
                told = f"repeats `{name}`: say it in other words, or name `{name}` in `after`"
                yield NodeFinding((*place, j), told)


def _is_volunteered(item: Fact | Denial) -> bool:
    return isinstance(item, Fact) and item.tier is Tier.VOLUNTEERED


def _repeats(line: str, item: Fact | Denial) -> bool:
    """True if a line contains a wording of a fact, or four of its content words in a row."""
    wordings = (*item.says, item.again) if isinstance(item, Fact) and item.again else item.says
    return any(normal(wording) in normal(line) or grams(wording) & grams(line) for wording in wordings)
