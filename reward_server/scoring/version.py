"""The scoring version: one name for everything a reward depends on besides the request.

It follows the revisions of the program (`revisions`), the data (scenarios, temperaments, reader, encoder) and the
judges. Two parts: `sv_` and 12 digits name what rubrics alone rest on; where judges of whole conversations may be
heard, 8 more digits name those. So activating a reward model visibly leaves the rubric's rewards as they were.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from personas.case.temperament import Temperament
from personas.reading.matcher import Matcher
from personas.reading.reader import Reader
from reward_server.judges.panel import Panel
from reward_server.transcripts.revisions import engine_digest
from scenarios.library import Library

__all__ = ["engine_digest", "guests_digest", "rubric_version", "scoring_version"]


def scoring_version(
    library: Library,
    reader: Reader,
    matcher: Matcher,
    panel: Panel,
    temperaments: Mapping[str, Temperament],
    *,
    conversation_judges: Mapping[str, str] | None = None,
    given: str = "",
) -> str:
    """`sv_`, 12 hexadecimal digits, and `_` with 8 more where there are judges of whole conversations.

    `conversation_judges` are their versions by name, that of the active reward model too. `given` is the digest of
    a scenario that is not in the library: its rewards do not rest on the others.
    """
    parts = {
        "engine": engine_digest(),
        "scenarios": given or library.digest,
        "temperaments": {slug: temperament.model_dump(mode="json") for slug, temperament in temperaments.items()},
        "reader": reader.version,
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
