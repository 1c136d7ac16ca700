"""Variants of a scenario: `<slug>.variants.yaml` beside its file.

A variant is another case behind the same public card: other facts, another decision that is right, other promises that
are safe. It says only what differs: words that are other ones everywhere, and entries that replace, key by key, the
entry of the same id. Each is written out here into a whole scenario, so nothing that plays, hears or scores knows of
variants. What is wrong in one is told at the line where it was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from personas.case.compiled import LabelledExamples
from personas.case.private import PrivateModel
from personas.case.schema import Identifier, Line
from personas.text.wording import normal
from scenarios.schema import ScenarioFile, ScriptStep, Text
from scenarios.spelling import meant
from scenarios.whole import written_out
from scenarios.yamlfile import Document, FileFinding, Loc, read_document, relative_name, shown, validated

SUFFIX = ".variants.yaml"
BASE = "base"
"""The scenario as its own file tells it."""
Split = Literal["train", "eval"]
_PERSONA = ("private", "persona")
_LISTS: Mapping[str, Loc] = {
    "facts": (*_PERSONA, "facts"),
    "denials": (*_PERSONA, "denials"),
    "commitments": (*_PERSONA, "commitments"),
    "skills": (*_PERSONA, "skills"),
    "criteria": ("private", "rubric", "criteria"),
    "tools": ("private", "tools"),
    "background": ("background",),
}
"""Key of a variant -> the list whose entries it changes."""
_NAMES = frozenset({
    "id", "topic", "slug", "schema", "dimension", "family", "temperaments", "goals", "closes", "kind", "figures",
    "after", "before", "given", "requires", "facts", "any_of", "or_commits", "tool", "value", "act", "need", "where",
})  # fmt: skip
"""Keys whose values are names: no words are changed in them."""
_OF_PERSONA = frozenset({"name", "role", "unknown", "nudges", "phrases", "ending", "bargain"})
Entry = dict[str, Any]


class OraclePart(PrivateModel):
    """The oracle of a variant: it begins as the scenario's does, and goes on in its own way."""

    keep: int = Field(default=0, ge=0, le=50)
    """So many steps of the scenario's own oracle."""
    then: tuple[ScriptStep, ...] = Field(min_length=1, max_length=50)


class Variant(PrivateModel):
    """What is different in one variant."""

    id: Identifier
    split: Split
    about: Text
    """Which case this is, and what is right in it; for authors."""
    words: dict[Line, Line] = Field(default_factory=dict)
    """Words of the scenario -> other words, wherever they stand in its private half, also where a sentence begins."""
    openings: tuple[Line, ...] | None = Field(default=None, min_length=2, max_length=8)
    """No other variant has them: by its first line, a conversation tells which case it is."""
    persona: Entry = Field(default_factory=dict)
    """Other keys of the persona (`nudges`, `ending`, `bargain`, …), each whole."""
    fact_groups: dict[Identifier, tuple[Identifier, ...]] = Field(default_factory=dict)
    drop: tuple[Identifier, ...] = ()
    """Ids of entries that this variant has not."""
    facts: tuple[Entry, ...] = ()
    denials: tuple[Entry, ...] = ()
    commitments: tuple[Entry, ...] = ()
    skills: tuple[Entry, ...] = ()
    criteria: tuple[Entry, ...] = ()
    tools: tuple[Entry, ...] = ()
    background: tuple[Entry, ...] = ()
    oracle: OraclePart | None = None

    @model_validator(mode="after")
    def _is_of_the_scenario(self) -> Self:
        for name in _LISTS:
            if any(not isinstance(entry.get("id"), str) for entry in getattr(self, name)):
                raise ValueError(f"every entry of `{name}` needs an `id`: that of the entry it changes, or a new one")
        if wrong := sorted(set(self.persona) - _OF_PERSONA):
            raise ValueError(f"`persona` cannot change {shown(wrong[0])}: it may have {', '.join(sorted(_OF_PERSONA))}")
        if self.id == BASE:
            raise ValueError(f"`{BASE}` is the scenario itself: choose another id")
        return self


class VariantsFile(PrivateModel):
    """`<slug>.variants.yaml`."""

    base: Split = "train"
    """The split of the scenario as its own file tells it."""
    variants: tuple[Variant, ...] = Field(min_length=1, max_length=16)


@dataclass(frozen=True)
class Change:
    """One variant, ready to be written out."""

    variant: Variant
    source: Document
    """Its file."""
    place: Loc
    """Where it stands in that."""

    def scenario(self, document: Document) -> Document:
        """The whole scenario of this variant, of that of the base before its groups were written out."""
        data = {**document.data, "private": self._worded(document.data["private"])}
        changed = Document(document.file, data, document.lines, dict(document.parts))
        for name, loc in _LISTS.items():
            if name != "background":
                self._change_list(changed, document, name, loc)
        self._change_persona(changed)
        self._change_oracle(changed)
        changed.data = written_out(changed.data)
        return changed

    def background(self, document: Document) -> Document:
        """The file of the persona's background, as it is in this variant."""
        changed = Document(document.file, self._worded(document.data), document.lines, dict(document.parts))
        self._change_list(changed, document, "background", _LISTS["background"])
        return changed

    def reworded(self, text: str) -> str:
        """A line of the scenario in the words of this variant."""
        words = _also_first(self.variant.words)
        return _words(words).sub(lambda found: words[found.group()], text) if words else text

    def _worded(self, node: Any, key: str = "") -> Any:
        if isinstance(node, str):
            return node if key in _NAMES else self.reworded(node)
        if isinstance(node, dict):
            return {name: self._worded(value, name) for name, value in node.items()}
        if isinstance(node, list):
            return [self._worded(value, key) for value in node]
        return node

    def _change_list(self, changed: Document, base: Document, name: str, loc: Loc) -> None:
        own = getattr(self.variant, name)
        holder = _at(changed.data, loc[:-1])
        entries = holder.get(loc[-1]) or [] if isinstance(holder, dict) else None
        if not isinstance(entries, list) or (not own and not self._drops(entries)):
            return
        numbers = {entry["id"]: i for i, entry in enumerate(own)}
        kept: list[Entry] = []
        for i, entry in enumerate(entries):
            name_of = _id_of(entry)
            if name_of in self.variant.drop:
                continue
            here = (*loc, len(kept))
            changed.parts[here] = base.origin((*loc, i))
            number = numbers.pop(name_of, None)
            whole = entry if number is None else self._merged(changed, entry, own[number], here, (name, number))
            kept.append(whole)
        for number in numbers.values():
            changed.parts[(*loc, len(kept))] = (self.source, (*self.place, name, number))
            kept.append(dict(own[number]))
        holder[loc[-1]] = kept

    def _drops(self, entries: Sequence[Any]) -> bool:
        return any(_id_of(entry) in self.variant.drop for entry in entries)

    def _merged(self, changed: Document, entry: Entry, own: Entry, here: Loc, there: Loc) -> Entry:
        for key in own:
            changed.parts[(*here, key)] = (self.source, (*self.place, *there, key))
        return {**entry, **own}

    def _change_persona(self, changed: Document) -> None:
        """The keys of the persona, and the groups of its facts."""
        variant, persona = self.variant, _at(changed.data, _PERSONA)
        own: Entry = dict(variant.persona)
        if variant.openings is not None:
            own["openings"] = list(variant.openings)
        for key, value in own.items():
            at = (key,) if key == "openings" else ("persona", key)
            changed.parts[(*_PERSONA, key)] = (self.source, (*self.place, *at))
            persona[key] = value
        if variant.fact_groups:
            private = changed.data["private"]
            own_groups = {name: list(facts) for name, facts in variant.fact_groups.items()}
            private["fact_groups"] = {**private.get("fact_groups", {}), **own_groups}

    def _change_oracle(self, changed: Document) -> None:
        part = self.variant.oracle
        if part is None:
            return
        loc: Loc = ("private", "exam", "oracle")
        steps = _at(changed.data, loc)
        keep = min(part.keep, len(steps))
        then = [step.model_dump(mode="json") for step in part.then]
        for number in range(len(then)):
            changed.parts[(*loc, keep + number)] = (self.source, (*self.place, "oracle", "then", number))
        changed.data["private"]["exam"]["oracle"] = [*steps[:keep], *then]


def read_variants(path: Path) -> tuple[VariantsFile, list[Change]] | None:
    """The variants of the scenario in a file; None where there are none.

    Raises:
        ScenarioFileError: the file cannot be used; names file and line.
    """
    path = path.with_suffix(SUFFIX)
    if not path.is_file():
        return None
    document = read_document(path, relative_name(path))
    file = validated(document, VariantsFile)
    return file, [Change(each, document, ("variants", i)) for i, each in enumerate(file.variants)]


def findings_on(change: Change, base: Document, background: Document | None) -> list[FileFinding]:
    """What a variant says that changes nothing: a word or an id that the scenario does not have."""
    variant, finding = change.variant, change.source.finding
    texts = "\n".join(_texts([base.data["private"], None if background is None else background.data]))
    unused = [word for word in variant.words if not _words(_also_first({word: word})).search(texts)]
    found = [
        finding((*change.place, "words", word), "the scenario does not have these words: correct or remove them")
        for word in unused
    ]
    ids = set(_ids(base, background))
    criteria = {_id_of(each) or "" for each in base.data["private"]["rubric"]["criteria"]}
    for i, entry in enumerate(variant.criteria):
        if entry["id"] not in criteria:
            told = f"a variant has the criteria of its scenario: correct the id.{meant(entry['id'], criteria)}"
            found.append(finding((*change.place, "criteria", i), told.removesuffix(".")))
    if variant.background and background is None:
        found.append(finding((*change.place, "background"), "the scenario has no file of a background: write one"))
    for i, name in enumerate(variant.drop):
        if name not in ids:
            told = f"there is no `{name}` to leave out: correct the id.{meant(name, ids)}".removesuffix(".")
            found.append(finding((*change.place, "drop", i), told))
    return found


def same_rubric(change: Change, base: ScenarioFile, own: ScenarioFile) -> Iterator[FileFinding]:
    """Where a variant has another rubric: what is counted and shown of one is that of all."""
    points = {each.id: (each.family, each.dimension, each.points) for each in base.private.rubric.criteria}
    kept = {each.id: (each.family, each.dimension, each.points) for each in own.private.rubric.criteria}
    for name, counts in points.items():
        if name in kept and kept[name] != counts:
            told = f"`{name}` has the family, dimension and points that it has in the scenario: remove other ones"
            yield change.source.finding((*change.place, "criteria"), told)
        if name not in kept:
            told = f"`{name}` is a criterion, which no variant can leave out: change its check instead"
            yield change.source.finding((*change.place, "drop"), told)


def alike(scenarios: Sequence[tuple[str, ScenarioFile]], changes: Sequence[Change]) -> Iterator[FileFinding]:
    """Variants that cannot be told from an earlier one by their first line, or have its id."""
    first: dict[str, str] = {}
    names: set[str] = set()
    for number, (name, file) in enumerate(scenarios):
        change = changes[number - 1] if number else None
        for opening in file.private.persona.openings:
            owner = first.setdefault(normal(opening), name)
            if owner != name and change is not None:
                told = f"the variant `{name}` begins as `{owner}` does: give it `openings` of its own"
                yield change.source.finding((*change.place, "openings"), told)
                break
        if name in names and change is not None:
            yield change.source.finding((*change.place, "id"), f"the id `{name}` is used twice: rename one")
        names.add(name)


def lent_to(change: Change, base: ScenarioFile, own: ScenarioFile, examples: LabelledExamples) -> LabelledExamples:
    """What of the sentences of labelled turns is true of a variant: those about entries that are asked for alike."""
    (base_asks, base_made), (own_asks, own_made) = _examples(base), _examples(own)
    return LabelledExamples(
        _lent(change, base_asks, own_asks, examples.topics),
        _lent(change, base_made, own_made, examples.commitments),
    )


def _examples(file: ScenarioFile) -> tuple[dict[str, Sequence[str]], dict[str, Sequence[str]]]:
    """The author's sentences by entry: of questions, and of commitments."""
    persona = file.private.persona
    asks: dict[str, Sequence[str]] = {fact.id: fact.asks for fact in persona.facts}
    asks |= {denial.id: denial.asks for denial in persona.denials}
    return asks, {commitment.id: commitment.examples for commitment in persona.commitments}


def _lent(
    change: Change,
    base: Mapping[str, Sequence[str]],
    own: Mapping[str, Sequence[str]],
    lent: Mapping[str, Sequence[str]],
) -> dict[str, tuple[str, ...]]:
    return {
        name: tuple(map(change.reworded, lines))
        for name, lines in lent.items()
        if name in own and [change.reworded(line) for line in base[name]] == list(own[name])
    }


def named(variant: str, findings: Sequence[FileFinding]) -> list[FileFinding]:
    """Findings that say which variant they are about."""
    return [FileFinding(each.file, each.line, f"in the variant `{variant}`: {each.message}") for each in findings]


def _also_first(words: Mapping[str, str]) -> dict[str, str]:
    """The words, also as they are written where a sentence begins with them."""
    return {_capital(old): _capital(new) for old, new in words.items()} | dict(words)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _words(words: Mapping[str, str]) -> re.Pattern[str]:
    """Any of the words, the longest first, where it stands as a word of its own."""
    longest = sorted(words, key=len, reverse=True)
    return re.compile(r"(?<![\w])(?:" + "|".join(map(re.escape, longest)) + r")(?![\w])")


def _texts(node: Any, key: str = "") -> Iterator[str]:
    """All texts whose words may be other ones."""
    if isinstance(node, str):
        if key not in _NAMES:
            yield node
    elif isinstance(node, dict):
        for name, value in node.items():
            yield from _texts(value, name)
    elif isinstance(node, list):
        for value in node:
            yield from _texts(value, key)


def _ids(base: Document, background: Document | None) -> Iterator[str]:
    for name, loc in _LISTS.items():
        document = background if name == "background" else base
        entries = None if document is None else _at(document.data, loc)
        for entry in entries if isinstance(entries, list) else ():
            if found := _id_of(entry):
                yield found


def _id_of(entry: Any) -> str | None:
    name = entry.get("id") if isinstance(entry, dict) else None
    return name if isinstance(name, str) else None


def _at(data: Any, loc: Loc) -> Any:
    for part in loc:
        if not isinstance(data, dict):
            return None
        data = data.get(part)
    return data
