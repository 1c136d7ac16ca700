"""The scoring version: one name for everything a reward depends on besides the request.

It follows the scenarios, the temperaments, the encoder, the judges and the program text of what hears, judges
and adds up. A constant to be raised by hand would be forgotten one day; so an edited comment makes a new
version too, which costs nothing, while two different rewards can never share one.

It has two parts: `sv_` and 12 digits name what rubrics alone rest on; where judges of whole conversations may be heard,
8 more digits name those. So it is seen at once that activating a reward model left the rubric's rewards as they were.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from personas import tables
from personas.matcher import Matcher
from personas.temperament import Temperament
from reward_server.judges.panel import Panel
from scenarios.library import Library

ENGINE = ("personas", "reward_server.judges", "reward_server.scoring", "reward_server.reward_models")
"""The packages whose program text decides rewards."""


def scoring_version(
    library: Library,
    matcher: Matcher,
    panel: Panel,
    temperaments: Mapping[str, Temperament],
    conversation_judges: Mapping[str, str] | None = None,
) -> str:
    """`sv_`, 12 hexadecimal digits, and `_` with 8 more where there are judges of whole conversations.

    `conversation_judges` are their versions by name, that of the active reward model too.
    """
    parts = {
        "engine": engine_digest(),
        "scenarios": library.digest,
        "temperaments": {slug: each.model_dump(mode="json") for slug, each in temperaments.items()},
        "encoder": matcher.version,
        "judges": panel.version,
    }
    guests = f"_{guests_digest(conversation_judges)}" if conversation_judges else ""
    return f"sv_{_digest(parts)[:12]}{guests}"


def rubric_version(version: str) -> str:
    """The part of a scoring version that rewards of the rubric alone rest on."""
    return version[: len("sv_") + 12]


def guests_digest(conversation_judges: Mapping[str, str]) -> str:
    """The part of a scoring version that names the judges of whole conversations: 8 digits of their versions."""
    return _digest(dict(conversation_judges))[:8]


def _digest(parts: Mapping[str, object]) -> str:
    canonical = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


@cache
def engine_digest() -> str:
    """A hash over the program text of the engine, and the tables that it reads text by."""
    digest = hashlib.sha256(tables.digest().encode())
    for package in ENGINE:
        modules = (entry for entry in files(package).iterdir() if entry.name.endswith(".py"))
        for module in sorted(modules, key=lambda entry: entry.name):
            # Universal newlines: a checkout with other line ends is the same program.
            text = module.read_text(encoding="utf-8")
            digest.update(f"{package}/{module.name}\0{text}\0".encode())
    return digest.hexdigest()
