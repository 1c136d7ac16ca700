"""Lint of scenario files: schema, names of files and folders, persona rules and rubric rules.

Run `python -m scenarios.lint [path …]` while writing; a path is a file of a scenario or a collection
folder. Fast and offline: nothing is played here (that is the exam). Findings never quote values.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from personas.case.calibration import ReaderCalibration
from personas.case.lint import lint_case
from personas.case.schema import Background, PersonaCase
from scenarios.agents import SUFFIX as AGENTS
from scenarios.agents import load_agents
from scenarios.background import OF_COLLECTION, load_background, load_common, waits_for
from scenarios.background import SUFFIX as BACKGROUND
from scenarios.calibration import load_calibration
from scenarios.rubric_file import GIVEN, SCHEMA, RubricFile, findings_of, is_rubric, read_rubric
from scenarios.rules import Loc, NodeFinding, final_tools, in_file, rule_findings
from scenarios.schema import CollectionFile, ScenarioFile
from scenarios.spelling import counted, meant
from scenarios.turns import SUFFIX as TURNS
from scenarios.turns import LabelledTurn, load_turns, names_of, unknown_names
from scenarios.variants import BASE, Change, alike, findings_on, named, read_variants, same_rubric
from scenarios.variants import SUFFIX as VARIANTS
from scenarios.whole import RUBRIC, read_whole, written_out
from scenarios.yamlfile import (
    Document,
    FileFinding,
    ScenarioFileError,
    errors_of,
    load,
    read_document,
    relative_name,
    validated,
)

COLLECTIONS = Path(__file__).parent / "collections"
COLLECTION_FILE = "collection.yaml"
FOREIGN = 20
"""So many questions that belong to no topic say whether personas tell what they were not asked."""


def is_packaged(root: Path) -> bool:
    """True for the folder of the collections that come with Labs."""
    return root.resolve() == COLLECTIONS.resolve()


@dataclass(frozen=True)
class LoadedVariant:
    """A variant of a scenario, written out."""

    change: Change
    file: ScenarioFile
    document: Document
    background: tuple[Background, ...]


@dataclass
class LoadedCollection:
    """One collection folder that passed, or the findings that stand against it."""

    file: CollectionFile
    document: Document
    background: tuple[Background, ...] = ()
    """What any of its personas answers."""
    scenarios: dict[str, tuple[ScenarioFile, Document]] = field(default_factory=dict)
    rubrics: dict[str, tuple[RubricFile, Document]] = field(default_factory=dict)
    """Scenarios without a persona."""
    variants: dict[str, tuple[LoadedVariant, ...]] = field(default_factory=dict)
    """Of the scenarios that have some, besides the scenario itself."""
    base_splits: dict[str, str] = field(default_factory=dict)
    warnings: list[FileFinding] = field(default_factory=list)
    """Findings in what can be used all the same."""
    calibration: ReaderCalibration | None = None
    """Of the reader, on turns of the collection."""


def load_collection(
    folder: Path, only: Iterable[str] | None = None
) -> tuple[LoadedCollection | None, list[FileFinding]]:
    """Read a collection folder with its scenarios (all, or the slugs in `only`) and lint them; the errors."""
    findings: list[FileFinding] = []
    try:
        file, document = load(folder / COLLECTION_FILE, CollectionFile, relative_name(folder / COLLECTION_FILE))
    except ScenarioFileError as error:
        return None, list(error.findings)
    findings += in_file(document, _collection_findings(file, folder))
    common = folder / OF_COLLECTION
    try:
        loaded = LoadedCollection(file, document, load_common(common, relative_name(common)))
        loaded.calibration = load_calibration(folder)
    except ScenarioFileError as error:
        return None, [*findings, *error.findings]
    wanted = None if only is None else set(only)
    paths = [p for p in sorted(folder.glob("*.y*ml")) if is_scenario(p)]
    for path in paths:
        if wanted is None or path.stem in wanted:
            findings += _loaded_from(path, loaded)
    if loaded.scenarios and len(file.foreign) < FOREIGN:
        findings.append(document.finding(("foreign",), f"`foreign` needs at least {FOREIGN} entries: add more"))
    if wanted is None and loaded.scenarios:
        findings += _waiting_in_vain(common, loaded)
    there = {path.stem for path in paths}
    for slug in sorted((wanted or set()) - there):
        told = f"there is no such scenario: check the name.{meant(slug, there)}".removesuffix(".")
        findings.append(FileFinding(relative_name(folder / f"{slug}.yaml"), 1, told))
    return loaded, findings


def _loaded_from(path: Path, loaded: LoadedCollection) -> list[FileFinding]:
    """Put what a file holds into its collection, or say what is wrong with it."""
    if path.suffix != ".yaml":
        return [FileFinding(relative_name(path), 1, "the file name must end in `.yaml`: rename it")]
    rubric = _rubric(path)
    if isinstance(rubric, list):
        return rubric
    if rubric is not None:
        loaded.rubrics[path.stem] = rubric
        loaded.warnings += in_file(rubric[1], findings_of(rubric[0]))
        return []
    found = load_scenario(path, loaded)
    if isinstance(found, list):
        return found
    beside = [*_beside(path, found[0], loaded), *_load_variants(path, found[0], loaded)]
    if not beside:
        loaded.scenarios[path.stem] = found
    return beside


def _rubric(path: Path) -> tuple[RubricFile, Document] | list[FileFinding] | None:
    """The rubric without a persona that a file holds, or what is wrong with it; None where it is another scenario."""
    try:
        if not _may_be_rubric(path) or not is_rubric((document := read_document(path, relative_name(path))).data):
            return None
        file = read_rubric(document, path.stem)
    except ScenarioFileError as error:
        return list(error.findings)
    if file.slug != path.stem:
        return [document.finding(("slug",), "the slug must be the name of the file: rename one of them")]
    return file, document


def _may_be_rubric(path: Path) -> bool:
    """A cheap look, since reading a scenario twice takes its time."""
    try:
        return SCHEMA.encode() in path.read_bytes()
    except OSError:
        return False


def _waiting_in_vain(path: Path, loaded: LoadedCollection) -> Iterator[FileFinding]:
    """Facts that the background of a collection waits for, and that no scenario has: the entry would never be said."""
    cases = [file.private.persona for file, _ in loaded.scenarios.values()]
    held = {fact.id for case in cases for fact in case.facts} | {denial.id for case in cases for denial in case.denials}
    for name, entry in sorted(waits_for(loaded.background).items()):
        if name not in held:
            yield FileFinding(
                relative_name(path), 1, f"no scenario has `{name}`, which `{entry}` waits for: correct the id"
            )


def is_scenario(path: Path) -> bool:
    """True if a YAML file of a collection folder is a scenario."""
    return path.name != COLLECTION_FILE and not path.name.endswith((AGENTS, BACKGROUND, RUBRIC, VARIANTS))


def _beside(path: Path, file: ScenarioFile, collection: LoadedCollection) -> list[FileFinding]:
    """The findings in the files that lie beside a scenario: its agents, its background and its labelled turns."""
    agents, background, turns = (path.with_suffix(suffix) for suffix in (AGENTS, BACKGROUND, TURNS))
    findings: list[FileFinding] = []
    try:
        load_agents(agents, file.public, relative_name(agents))
    except ScenarioFileError as error:
        findings += error.findings
    known = {entry.id for entry in collection.background}
    try:
        own = load_background(background, file.private, collection.file.topics, relative_name(background))
        known |= {entry.id for entry in own}
    except ScenarioFileError as error:
        return [*findings, *error.findings]  # labels may name what is in it
    try:
        labelled = load_turns(turns)
    except ValueError as error:
        return [*findings, FileFinding(relative_name(turns), 1, f"{error}: correct the line")]
    return [*findings, *_wrong_labels(relative_name(turns), file.private.persona, known, labelled)]


def _load_variants(path: Path, base: ScenarioFile, loaded: LoadedCollection) -> list[FileFinding]:
    """Put the variants of a scenario to its collection; what is wrong with them."""
    try:
        read = read_variants(path)
        if read is None:
            return []
        whole, beside = read_whole(path, loaded.document), path.with_suffix(BACKGROUND)
        asides = read_document(beside, relative_name(beside)) if beside.is_file() else None
    except ScenarioFileError as error:
        return list(error.findings)
    file, changes = read
    findings: list[FileFinding] = []
    variants: list[LoadedVariant] = []
    for change in changes:
        findings += findings_on(change, whole, asides)
        made: LoadedVariant | list[FileFinding] = _load_variant(change, whole, beside, path, loaded.file)
        if isinstance(made, list):
            findings += made
        else:
            findings += same_rubric(change, base, made.file)
            variants.append(made)
    if not findings:
        findings += alike([(BASE, base), *((each.change.variant.id, each.file) for each in variants)], changes)
    loaded.variants[path.stem], loaded.base_splits[path.stem] = tuple(variants), file.base
    return findings


def _load_variant(
    change: Change, whole: Document, beside: Path, path: Path, collection: CollectionFile
) -> LoadedVariant | list[FileFinding]:
    name = change.variant.id
    try:
        document = change.scenario(whole)
        file = validated(document, ScenarioFile)
        # A warning would be that of the scenario itself once more: rubrics are the same.
        errors = errors_of(in_file(document, _scenario_findings(file, collection, path)))
        if errors:
            return named(name, errors)
        background = load_background(beside, file.private, collection.topics, relative_name(beside), change.background)
    except ScenarioFileError as error:
        return named(name, error.findings)
    return LoadedVariant(change, file, document, background)


def _wrong_labels(
    name: str, case: PersonaCase, background: Collection[str], labelled: Sequence[LabelledTurn]
) -> list[FileFinding]:
    """Labels that the case does not have; one finding for all if none fits, as in turns of another scenario."""
    unknown = [(turn, label) for turn in labelled for label in unknown_names(case, background, turn)]
    if unknown and {label for _, label in unknown} == {label for turn in labelled for label in names_of(turn)}:
        told = (
            "no label here names anything in the case: label turns of your own, or remove the file until you have some"
        )
        return [FileFinding(name, unknown[0][0].number, told)]
    return [FileFinding(name, turn.number, f"the case has no `{label}`: correct the label") for turn, label in unknown]


def load_scenario(path: Path, collection: LoadedCollection) -> tuple[ScenarioFile, Document] | list[FileFinding]:
    """Read and lint one scenario with its rubric and its oracle; the findings if there are any."""
    try:
        document = read_whole(path, collection.document)
        document.data = written_out(document.data)
        file = validated(document, ScenarioFile)
    except ScenarioFileError as error:
        return list(error.findings)
    findings = in_file(document, _scenario_findings(file, collection.file, path))
    if errors_of(findings):
        return findings
    collection.warnings += findings
    return file, document


def _collection_findings(file: CollectionFile, folder: Path) -> list[NodeFinding]:
    findings: list[NodeFinding] = []
    if file.public.slug != folder.resolve().name:
        findings.append(NodeFinding(("public", "slug"), "the slug must be the name of the folder: rename one of them"))
    if file.public.slug == GIVEN:
        findings.append(
            NodeFinding(("public", "slug"), f"`{GIVEN}` names rubrics that come with a request: choose another")
        )
    count = Counter(criterion.id for criterion in file.criteria)
    for i, criterion in enumerate(file.criteria):
        if count[criterion.id] > 1:
            findings.append(
                NodeFinding(("criteria", i), f"the id `{criterion.id}` is used twice among criteria: rename one")
            )
    asks = {ask.casefold() for topic in file.topics.values() for ask in topic.asks}
    for i, question in enumerate(file.foreign):
        if question.casefold() in asks:
            findings.append(
                NodeFinding(("foreign", i), "a topic has this question too, so it is not foreign: remove it")
            )
    if len({q.casefold() for q in file.foreign}) < len(file.foreign):
        findings.append(NodeFinding(("foreign",), "a foreign question stands here twice: replace one"))
    return findings


def _scenario_findings(file: ScenarioFile, collection: CollectionFile, path: Path) -> list[NodeFinding]:
    findings = list(rule_findings(file, collection))
    if file.public.slug != path.stem:
        findings.append(NodeFinding(("public", "slug"), "the slug must be the name of the file: rename one of them"))
    for problem in lint_case(file.private.persona, collection.topics, final_tools(file)):
        findings.append(NodeFinding(("private", "persona", *_parts(problem.path)), problem.message))
    return findings


def _parts(path: str) -> Loc:
    """`facts[3].says` as a location."""
    found = re.findall(r"([A-Za-z_]+)|\[(\d+)\]", path)
    return tuple(int(number) if number else name for name, number in found)


def lint(paths: Sequence[Path]) -> tuple[int, list[FileFinding]]:
    """Lint files and folders; how many scenarios passed, and all findings."""
    passed = 0
    findings: list[FileFinding] = []
    for path in paths or [COLLECTIONS]:
        for folder, only in _folders(path):
            loaded, errors = load_collection(folder, only)
            findings += errors
            if loaded:
                passed += len(loaded.scenarios) + len(loaded.rubrics)
                findings += loaded.warnings
    return passed, findings


def _folders(path: Path) -> list[tuple[Path, list[str] | None]]:
    if path.is_file() or path.suffix in (".yaml", ".yml"):
        only = [] if path.name in (COLLECTION_FILE, OF_COLLECTION) else [path.name.partition(".")[0]]
        return [(path.parent, only)]
    if (path / COLLECTION_FILE).exists() or not path.is_dir():
        return [(path, None)]
    folders = [child for child in sorted(path.iterdir()) if child.is_dir() and any(child.glob("*.y*ml"))]
    return [(child, None) for child in folders]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command `python -m scenarios.lint`."""
    parser = argparse.ArgumentParser(prog="scenarios.lint", description="Lint collections and scenarios.")
    parser.add_argument("paths", nargs="*", type=Path, help="files of a scenario or collection folders; default: all")
    passed, findings = lint(parser.parse_args(arguments).paths)
    for finding in findings:
        print(finding)
    print(f"{counted(passed, 'scenario')} passed, {counted(len(findings), 'finding')}")
    return 1 if errors_of(findings) else 0


if __name__ == "__main__":
    raise SystemExit(main())
