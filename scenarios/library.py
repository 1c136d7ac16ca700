"""Loads the collections once into two halves that do not touch: a public catalog and a private vault.

The catalog holds cards and dimension names and can be shown to anyone. The vault opens sealed
scenarios: case, rubric, exam. A library is immutable; `digest` is a hash over the contents of all its
files, so that two servers with the same digest score alike. Names for what is written once (criteria of a collection,
groups of facts) are written out before: the digest is over what they stand for. Broken files are refused, not skipped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from personas.case.compiled import CompiledCase, Examples, compile_case
from personas.case.schema import Background, Topic
from scenarios.agents import SUFFIX as AGENTS
from scenarios.agents import load_agents
from scenarios.background import SUFFIX as BACKGROUND
from scenarios.background import fitting, load_background
from scenarios.drawing import Kin
from scenarios.lint import COLLECTIONS, LoadedCollection, load_collection
from scenarios.schema import CollectionCard, NaturalAgents, ScenarioCard, ScenarioFile, ScenarioSecrets
from scenarios.turns import SUFFIX as TURNS
from scenarios.turns import LabelledTurn, examples_of, load_turns
from scenarios.variants import BASE, lent_to
from scenarios.whole import without_shorthand
from scenarios.yamlfile import Finding, ScenarioError


@dataclass(frozen=True)
class PublicScenario:
    """What anyone may know of a scenario."""

    card: ScenarioCard
    dimensions: tuple[str, ...]
    personas: tuple[str, ...]
    """Slugs of the temperaments that `config.persona_slug` may name; the first is the default."""
    splits: tuple[str, ...] = ()
    """What `config.split` may name: those of the scenario's variants; none if it has no variants."""


@dataclass(frozen=True)
class PublicCollection:
    """What anyone may know of a collection."""

    card: CollectionCard
    scenarios: Mapping[str, PublicScenario]


@dataclass(frozen=True)
class Catalog:
    """The public half of a library, sorted by slug."""

    collections: Mapping[str, PublicCollection]

    def find(self, collection: str, scenario: str) -> PublicScenario | None:
        """The public scenario of that name, if there is one."""
        found = self.collections.get(collection)
        return found.scenarios.get(scenario) if found else None


@dataclass(frozen=True)
class SealedScenario:
    """A whole scenario, private half included. Never serialised; its repr shows only its name."""

    collection: str
    card: ScenarioCard
    version: int
    secrets: ScenarioSecrets = field(repr=False)
    case: CompiledCase = field(repr=False)
    topics: Mapping[str, Topic] = field(repr=False)
    foreign: tuple[str, ...] = field(repr=False)
    variant: str = field(default=BASE, repr=False)
    split: str | None = field(default=None, repr=False)
    """What the variant is for; None where the scenario has no others."""

    @property
    def name(self) -> str:
        """`collection/scenario`."""
        return f"{self.collection}/{self.card.slug}"

    def __repr__(self) -> str:
        return f"<SealedScenario {self.name}>"


class Vault:
    """The private half of a library. Only scoring, episodes, judges and jobs may hold one."""

    def __init__(self, sealed: Mapping[tuple[str, str], Sequence[SealedScenario]]) -> None:
        """Each scenario with its variants, itself first."""
        self._kin = {name: Kin(variants) for name, variants in sealed.items()}

    def open(self, collection: str, scenario: str) -> SealedScenario:
        """The sealed scenario as its own file tells it; `KeyError` when there is none, here and below."""
        return self._kin[collection, scenario].variants[0]

    def variants(self, collection: str, scenario: str) -> tuple[SealedScenario, ...]:
        """The scenario and its other variants."""
        return self._kin[collection, scenario].variants

    def drawn(self, collection: str, scenario: str, seed: int, split: str | None = None) -> SealedScenario:
        """The variant that is played with a seed."""
        return self._kin[collection, scenario].drawn(seed, split)

    def heard(self, collection: str, scenario: str, opening: str, lines: Iterable[str] = ()) -> SealedScenario:
        """The variant that a conversation is about, by what its persona said."""
        return self._kin[collection, scenario].heard(opening, lines)

    def names(self) -> tuple[tuple[str, str], ...]:
        """All (collection, scenario) pairs, sorted."""
        return tuple(sorted(self._kin))

    def __repr__(self) -> str:
        return f"<Vault: {len(self._kin)} scenarios>"


@dataclass(frozen=True)
class Library:
    """Everything the server knows of scenarios."""

    catalog: Catalog
    vault: Vault
    digest: str


def load_library(root: Path | None = None, only: Iterable[str] | None = None, *, turns: bool = True) -> Library:
    """Load all collections below `root` (default: the packaged ones), or only some.

    Args:
        root: a folder of collections.
        only: collections (`tutoring`) or scenarios (`tutoring/fractions`).
        turns: whether labelled turns lend their sentences to the cases.
    """
    library, findings = load_sound(root, only, turns=turns)
    if findings:
        raise ScenarioError(findings)
    return library


def load_sound(
    root: Path | None = None, only: Iterable[str] | None = None, *, turns: bool = True
) -> tuple[Library, list[Finding]]:
    """As `load_library`, for authors: leaves out what is broken and says what is wrong with it."""
    root = root or COLLECTIONS
    findings: list[Finding] = []
    collections: dict[str, LoadedCollection] = {}
    for slug, scenarios in _wanted(root, only).items():
        loaded, found = load_collection(root / slug, scenarios)
        findings += found
        if loaded:
            collections[slug] = loaded
    if not collections and not findings:
        findings.append(Finding(str(root), 1, "no collections here: add a folder with a `collection.yaml`"))
    return _assemble(root, collections, turns=turns), findings


def _wanted(root: Path, only: Iterable[str] | None) -> dict[str, list[str] | None]:
    """Folder -> the scenarios wanted of it; None for all."""
    if only is None:
        if not root.is_dir():
            return {}
        return {p.name: None for p in sorted(root.iterdir()) if p.is_dir() and any(p.glob("*.y*ml"))}
    wanted: dict[str, list[str] | None] = {}
    for name in only:
        collection, _, scenario = name.partition("/")
        listed = wanted.setdefault(collection, [])
        if not scenario:
            wanted[collection] = None
        elif listed is not None:
            listed.append(scenario)
    return wanted


def natural_agents(library: Library, root: Path | None = None) -> dict[str, NaturalAgents]:
    """The natural agents of the scenarios that have some, by scenario name."""
    found: dict[str, NaturalAgents] = {}
    for collection, scenario in library.vault.names():
        path = (root or COLLECTIONS) / collection / f"{scenario}{AGENTS}"
        if agents := load_agents(path, library.vault.open(collection, scenario).card):
            found[f"{collection}/{scenario}"] = agents
    return found


def labelled_turns(library: Library, root: Path | None = None) -> dict[str, tuple[LabelledTurn, ...]]:
    """The labelled turns of each scenario, by scenario name."""
    return {
        f"{collection}/{scenario}": load_turns((root or COLLECTIONS) / collection / f"{scenario}{TURNS}")
        for collection, scenario in library.vault.names()
    }


def _assemble(root: Path, collections: Mapping[str, LoadedCollection], *, turns: bool) -> Library:
    public: dict[str, PublicCollection] = {}
    sealed: dict[tuple[str, str], list[SealedScenario]] = {}
    contents: dict[str, Any] = {}
    for slug, loaded in sorted(collections.items()):
        contents[slug] = {key: value for key, value in loaded.document.data.items() if key != "criteria"}
        cards: dict[str, PublicScenario] = {}
        for name, (file, document) in sorted(loaded.scenarios.items()):
            examples = examples_of(load_turns(root / slug / f"{name}{TURNS}")) if turns else Examples()
            persona, topics = file.private.persona, loaded.file.topics
            background = load_background(root / slug / f"{name}{BACKGROUND}", file.private, topics)
            common = fitting(loaded.background, background, persona, topics)
            asides = [entry.model_dump(mode="json") for entry in (*background, *common)]
            data = without_shorthand(document.data)
            contents[f"{slug}/{name}"] = [data, examples.topics, examples.commitments, asides]
            variants = loaded.variants.get(name, ())
            split = loaded.base_splits.get(name)
            cards[name] = _public(file, [split, *(each.change.variant.split for each in variants)] if split else ())
            base = _seal(slug, file, loaded, examples, background, common)
            sealed[slug, name] = [replace(base, split=split)]
            for each in variants:
                common = fitting(loaded.background, each.background, each.file.private.persona, topics)
                lent = lent_to(each.change, file, each.file, examples)
                own = _seal(slug, each.file, loaded, lent, each.background, common)
                sealed[slug, name].append(replace(own, variant=each.change.variant.id, split=each.change.variant.split))
                asides = [entry.model_dump(mode="json") for entry in (*each.background, *common)]
                data = without_shorthand(each.document.data)
                contents[f"{slug}/{name}/{own.variant}"] = [data, lent.topics, lent.commitments, asides]
        public[slug] = PublicCollection(loaded.file.public, cards)
    canonical = json.dumps(contents, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return Library(Catalog(public), Vault(sealed), hashlib.sha256(canonical.encode()).hexdigest())


def _public(file: ScenarioFile, splits: Iterable[str]) -> PublicScenario:
    dimensions = tuple(dimension.name for dimension in file.private.rubric.dimensions)
    return PublicScenario(file.public, dimensions, file.private.persona.temperaments, tuple(sorted(set(splits))))


def _seal(  # noqa: PLR0917 (all that a scenario is made of)
    collection: str,
    file: ScenarioFile,
    loaded: LoadedCollection,
    examples: Examples,
    background: tuple[Background, ...],
    common: tuple[Background, ...],
) -> SealedScenario:
    replies = {tool.id: tool.reply for tool in file.private.tools}
    return SealedScenario(
        collection=collection,
        card=file.public,
        version=file.version,
        secrets=file.private,
        case=compile_case(file.private.persona, loaded.file.topics, replies, examples, background, common),
        topics=loaded.file.topics,
        foreign=loaded.file.foreign,
    )
