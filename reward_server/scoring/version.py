"""The scoring version: one name for everything a reward depends on besides the request.

It follows the scenarios, the temperaments, the encoder, the judges and the program text of what hears, judges
and adds up. A constant to be raised by hand would be forgotten one day; so an edited comment makes a new
version too, which costs nothing, while two different rewards can never share one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

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
    """`sv_` and 12 hexadecimal digits; `conversation_judges` are versions by name, the active reward model's too."""
    parts = {
        "engine": engine_digest(),
        "scenarios": library.digest,
        "temperaments": {slug: each.model_dump(mode="json") for slug, each in temperaments.items()},
        "encoder": matcher.version,
        "judges": panel.version,
        "conversation_judges": dict(conversation_judges or {}),
    }
    canonical = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return f"sv_{hashlib.sha256(canonical.encode()).hexdigest()[:12]}"


@cache
def engine_digest() -> str:
    """A hash over the program text of the engine."""
    digest = hashlib.sha256()
    for package in ENGINE:
        modules = (entry for entry in files(package).iterdir() if entry.name.endswith(".py"))
        for module in sorted(modules, key=lambda entry: entry.name):
            # Universal newlines: a checkout with other line ends is the same program.
            text = module.read_text(encoding="utf-8")
            digest.update(f"{package}/{module.name}\0{text}\0".encode())
    return digest.hexdigest()
