"""A collection that a lab brought: read from texts, sealed under a name that no other lab can have.

Its scoring version follows its contents alone, so what one lab brings changes nothing for the others.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from scenarios.library import PublicCollection, SealedScenario, load_sound
from scenarios.rubric_file import GIVEN
from scenarios.yamlfile import FileFinding

FILE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*(\.(rubric|agents|background|turns|logs))?\.(yaml|jsonl)")
SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
MAX_SLUG = 60
PLUGINS = "`plugin` is for the scenarios of whoever runs the server: use another check"


@dataclass(frozen=True)
class Brought:
    """What a lab brought, ready to be put beside what everybody may use."""

    card: PublicCollection
    sealed: tuple[SealedScenario, ...] = field(repr=False)


def own_name(slug: str, lab_id: str) -> str:
    """What a lab's collection is called everywhere."""
    return f"{slug}@{lab_id}"


def owner_of(collection: str) -> str | None:
    """The lab that brought a collection; None of those that the server has."""
    return collection.partition("@")[2] or None


def write_files(folder: Path, slug: str, files: Mapping[str, str]) -> None:
    """The collection as a folder of collections."""
    place = folder / slug
    place.mkdir(parents=True)
    for name, text in files.items():
        if FILE.fullmatch(name):
            (place / name).write_text(text, encoding="utf-8")


def read_own(slug: str, lab_id: str, files: Mapping[str, str], digest: str) -> tuple[Brought | None, list[str]]:
    """The collection, or what is wrong with it: a line for each finding."""
    wrong = [
        f"{name[:80]}: a file is called SLUG.yaml, SLUG.rubric.yaml, …: rename it"
        for name in files
        if not FILE.fullmatch(name)
    ]
    if not SLUG.fullmatch(slug) or len(slug) > MAX_SLUG or slug == GIVEN:
        wrong.append(f"the name of a collection is lower-case words joined by `-`, at most {MAX_SLUG} characters")
    if wrong:
        return None, wrong
    with tempfile.TemporaryDirectory() as place:
        write_files(Path(place), slug, files)
        library, findings = load_sound(Path(place), [slug])
    lines = [_line(each) for each in findings]
    opened = [library.vault.open(*name) for name in library.vault.names()]
    lines += [f"{each.card.slug}: {PLUGINS}" for each in opened if _asks_plugins(each)]
    if lines or not opened:
        return None, lines or ["there is no scenario: add SLUG.yaml"]
    name = own_name(slug, lab_id)
    public = library.catalog.collections[slug]
    card = replace(public, card=public.card.model_copy(update={"slug": name}))
    return Brought(card, tuple(replace(each, collection=name, digest=digest) for each in opened)), []


def _line(finding: FileFinding) -> str:
    """With the name of its file alone: the folder is ours."""
    return f"{Path(finding.file).name}:{finding.line}: {finding.message}"


def _asks_plugins(scenario: SealedScenario) -> bool:
    rubric, reward = scenario.secrets.rubric, scenario.secrets.reward
    checks = (check for criterion in rubric.criteria for check in criterion.checks)
    return any(check.plugin for check in checks) or any(
        part.judge not in ("rubric", "reward_model", "classifier") for part in (reward.parts if reward else ())
    )
