"""Loads the collections once into two halves that do not touch: a public catalog and a private vault.

The catalog holds cards and dimension names and can be shown to anyone. The vault opens sealed
scenarios: case, rubric, exam. A library is immutable; `digest` is a hash over the contents of all its
files, so that two servers with the same digest score alike. Names for what is written once (criteria of a collection,
groups of facts) are written out before: the digest is over what they stand for. Broken files are refused, not skipped.
"""

from __future__ import annotations

import gc
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from personas.case.compiled import CompiledCase, LabelledExamples, compile_case
from personas.case.schema import Background, Topic
from scenarios.agents import SUFFIX as AGENTS
from scenarios.agents import load_agents, load_breaches
from scenarios.background import SUFFIX as BACKGROUND
from scenarios.background import fitting, load_background
from scenarios.drawing import Kin
from scenarios.lint import COLLECTIONS, LoadedCollection, is_packaged, load_collection
from scenarios.rubric_file import RubricFile
from scenarios.schema import (
    NOBODY,
    Breach,
    CollectionCard,
    Criterion,
    NaturalAgents,
    Rubric,
    ScenarioCard,
    ScenarioFile,
    ScenarioSecrets,
    rubric_secrets,
)
from scenarios.turns import SUFFIX as TURNS
from scenarios.turns import LabelledTurn, examples_of, load_turns
from scenarios.variants import BASE, lent_to
from scenarios.whole import without_shorthand
from scenarios.yamlfile import FileFinding, ScenarioFileError


@dataclass(frozen=True)
class PublicScenario:
    """The part of a scenario that anyone may know."""

    card: ScenarioCard
    dimensions: tuple[str, ...]
    personas: tuple[str, ...]
    """Slugs of the temperaments that `config.persona_slug` may name; the first is the default. None of a rubric
    without a persona."""
    splits: tuple[str, ...] = ()
    """What `config.split` may name: those of the scenario's variants; none if it has no variants."""

    @property
    def is_played(self) -> bool:
        """True if episodes of it can be played."""
        return bool(self.personas)


@dataclass(frozen=True)
class PublicCollection:
    """The part of a collection that anyone may know."""

    card: CollectionCard
    scenarios: Mapping[str, PublicScenario]

    @property
    def played(self) -> tuple[str, ...]:
        """The scenarios that episodes can be played of."""
        return tuple(slug for slug, found in self.scenarios.items() if found.is_played)


@dataclass(frozen=True)
class Catalog:
    """The public half of a library, sorted by slug; what labs brought comes and goes."""

    collections: MutableMapping[str, PublicCollection]

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
    digest: str = ""
    """Of one that is not in the library: over all it holds, since the library's own does not speak of it."""

    variant: str = field(default=BASE, repr=False)
    split: str | None = field(default=None, repr=False)
    """What the variant is for; None where the scenario has no others."""

    @property
    def has_persona(self) -> bool:
        """True if somebody plays in it; a rubric alone judges conversations that were held elsewhere."""
        return bool(self.secrets.persona.temperaments)

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
        self._own: dict[str, dict[tuple[str, str], SealedScenario]] = {}
        self._lent: WeakValueDictionary[tuple[str, str], SealedScenario] = WeakValueDictionary()

    def open(self, collection: str, scenario: str) -> SealedScenario:
        """The sealed scenario as its own file tells it; `KeyError` when there is none, here and below."""
        return self._kin_of(collection, scenario).variants[0]

    def variants(self, collection: str, scenario: str) -> tuple[SealedScenario, ...]:
        """The scenario and its other variants."""
        return self._kin_of(collection, scenario).variants

    def drawn(self, collection: str, scenario: str, seed: int, split: str | None = None) -> SealedScenario:
        """The variant that is played with a seed."""
        return self._kin_of(collection, scenario).drawn(seed, split)

    def heard(self, collection: str, scenario: str, opening: str, lines: Iterable[str] = ()) -> SealedScenario:
        """The variant that a conversation is about, by what its persona said."""
        return self._kin_of(collection, scenario).heard(opening, lines)

    def _kin_of(self, collection: str, scenario: str) -> Kin[SealedScenario]:
        found = self._kin.get((collection, scenario))
        if found is not None:
            return found
        lent = self._lent.get((collection, scenario))
        if lent is None:
            raise KeyError(collection, scenario)
        return Kin([lent])

    def of_one_server(self) -> Vault:
        """The same scenarios, without what was lent or brought."""
        return Vault({name: kin.variants for name, kin in self._kin.items()})

    def put(self, name: str, brought: Sequence[SealedScenario]) -> None:
        """Have the scenarios of a collection that a lab brought in place of those it had; of none, they are gone."""
        self._own[name] = {(each.collection, each.card.slug): each for each in brought}
        self._lent.update(self._own[name])

    def lend(self, given: SealedScenario) -> SealedScenario:
        """Let it be opened, as long as whoever needs it keeps what this returns; no catalog names it.

        Its name says what it holds, so one that was lent before under that name is the same, and is returned.
        """
        return self._lent.setdefault((given.collection, given.card.slug), given)

    def is_lent(self, collection: str, scenario: str) -> bool:
        """True if it is not of the library."""
        return (collection, scenario) not in self._kin

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
    warnings: tuple[FileFinding, ...] = ()
    """What the authors of these files should look at."""

    def of_one_server(self) -> Library:
        """The same for a server of its own, beside which labs bring theirs."""
        return Library(Catalog(dict(self.catalog.collections)), self.vault.of_one_server(), self.digest)


NO_SCENARIOS = Library(Catalog({}), Vault({}), "")


def load_library(root: Path | None = None, only: Iterable[str] | None = None, *, turns: bool = True) -> Library:
    """Load all collections below `root` (default: the packaged ones), or only some.

    Args:
        root: a folder of collections.
        only: collections (`tutoring`) or scenarios (`tutoring/fractions`).
        turns: whether labelled turns lend their sentences to the cases.
    """
    library, errors = load_sound(root, only, turns=turns)
    if errors:
        raise ScenarioFileError(errors)
    return library


def load_sound(
    root: Path | None = None, only: Iterable[str] | None = None, *, turns: bool = True
) -> tuple[Library, list[FileFinding]]:
    """As `load_library`, for authors: leaves out what is broken and says what is wrong with it (the errors)."""
    root = root or COLLECTIONS
    errors: list[FileFinding] = []
    collections: dict[str, LoadedCollection] = {}
    with uncollected():
        for slug, scenarios in _wanted(root, only).items():
            loaded, found = load_collection(root / slug, scenarios)
            errors += found
            if loaded:
                collections[slug] = loaded
        if not collections and not errors:
            errors.append(FileFinding(str(root), 1, "no collections here: add a folder with a `collection.yaml`"))
        return _assemble(root, collections, turns=turns), errors


@contextmanager
def uncollected() -> Iterator[None]:
    """Hardly anything that is read becomes garbage: to look for it again and again takes a third of the time."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


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


def breaches(library: Library, root: Path | None = None) -> dict[str, tuple[Breach, ...]]:
    """The breaches that authors wrote for the check, by scenario name."""
    return {
        f"{collection}/{scenario}": load_breaches((root or COLLECTIONS) / collection / f"{scenario}{AGENTS}")
        for collection, scenario in library.vault.names()
    }


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
    learned = turns and is_packaged(root)
    if not learned:
        # The same files are read otherwise there: they have another scoring version.
        contents["#learned"] = False
    for slug, loaded in sorted(collections.items()):
        contents[slug] = {key: value for key, value in loaded.document.data.items() if key != "criteria"}
        if loaded.calibration is not None:
            contents[slug]["reader"] = asdict(loaded.calibration)
        cards: dict[str, PublicScenario] = {}
        for name, (rubric, document) in sorted(loaded.rubrics.items()):
            contents[f"{slug}/{name}"] = [document.data]
            cards[name] = PublicScenario(rubric.card, dimensions_of(rubric), ())
            sealed[slug, name] = [seal_rubric(slug, rubric, rubric.card)]
        for name, (file, document) in sorted(loaded.scenarios.items()):
            examples = examples_of(load_turns(root / slug / f"{name}{TURNS}")) if turns else LabelledExamples()
            persona, topics = file.private.persona, loaded.file.topics
            background = load_background(root / slug / f"{name}{BACKGROUND}", file.private, topics)
            common = fitting(loaded.background, background, persona, topics)
            asides = [entry.model_dump(mode="json") for entry in (*background, *common)]
            data = without_shorthand(document.data)
            contents[f"{slug}/{name}"] = [data, examples.topics, examples.commitments, asides]
            variants = loaded.variants.get(name, ())
            split = loaded.base_splits.get(name)
            cards[name] = _public(file, [split, *(each.change.variant.split for each in variants)] if split else ())
            base = _seal(slug, file, loaded, examples, background, common, learned=learned)
            sealed[slug, name] = [replace(base, split=split)]
            for each in variants:
                common = fitting(loaded.background, each.background, each.file.private.persona, topics)
                lent = lent_to(each.change, file, each.file, examples)
                own = _seal(slug, each.file, loaded, lent, each.background, common, learned=learned)
                sealed[slug, name].append(replace(own, variant=each.change.variant.id, split=each.change.variant.split))
                asides = [entry.model_dump(mode="json") for entry in (*each.background, *common)]
                data = without_shorthand(each.document.data)
                contents[f"{slug}/{name}/{each.change.variant.id}"] = [data, lent.topics, lent.commitments, asides]
        public[slug] = PublicCollection(loaded.file.public, dict(sorted(cards.items())))
    canonical = json.dumps(contents, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    warnings = tuple(finding for loaded in collections.values() for finding in loaded.warnings)
    return Library(Catalog(public), Vault(sealed), hashlib.sha256(canonical.encode()).hexdigest(), warnings)


def _public(file: ScenarioFile, splits: Iterable[str]) -> PublicScenario:
    dimensions, temperaments = dimensions_of(file.private.rubric), file.private.persona.temperaments
    return PublicScenario(file.public, dimensions, temperaments, tuple(sorted(set(splits))))


def costly_commitments(criteria: Iterable[Criterion]) -> frozenset[str]:
    """The commitments that a cap or a deduction rests on."""
    return frozenset(
        name
        for criterion in criteria
        if criterion.points <= 0
        for check in criterion.checks
        if check.committed
        for name in check.committed.any_of
    )


def dimensions_of(rubric: Rubric) -> tuple[str, ...]:
    """Their names, which are public."""
    return tuple(dimension.name for dimension in rubric.dimensions)


def seal_rubric(collection: str, file: RubricFile, card: ScenarioCard, digest: str = "") -> SealedScenario:
    """A rubric without a persona as judges and scoring take it: nobody is in its case, so nothing can be found out."""
    return SealedScenario(
        collection=collection,
        card=card,
        version=file.version,
        secrets=rubric_secrets(file.rubric, file.reward),
        case=nobody(),
        topics={},
        foreign=(),
        digest=digest,
    )


@cache
def nobody() -> CompiledCase:
    """One for all rubrics without a persona: what is read of a conversation does not depend on them."""
    return compile_case(NOBODY, {})


def _seal(  # noqa: PLR0917 (all that a scenario is made of)
    collection: str,
    file: ScenarioFile,
    loaded: LoadedCollection,
    examples: LabelledExamples,
    background: tuple[Background, ...],
    common: tuple[Background, ...],
    *,
    learned: bool,
) -> SealedScenario:
    replies = {tool.id: tool.reply for tool in file.private.tools}
    return SealedScenario(
        collection=collection,
        card=file.public,
        version=file.version,
        secrets=file.private,
        case=replace(
            compile_case(
                file.private.persona,
                loaded.file.topics,
                replies,
                examples,
                background,
                common,
                costly_commitments(file.private.rubric.criteria),
            ),
            calibration=loaded.calibration,
            learned=learned,
        ),
        topics=loaded.file.topics,
        foreign=loaded.file.foreign,
    )
