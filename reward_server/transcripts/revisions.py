"""Revisions of the modules that decide rewards and verdicts. Raise a module's number when what it decides changes.

A scoring version names these revisions and digests of the data (scenarios, reader, encoder), not program text: an
edited comment retires no stored calibration. `tests/scoring/test_golden_rewards.py` fails when rewards move and no
number was raised.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache

REVISIONS: Mapping[str, int] = {
    "personas.reading": 9,
    "personas.hearing": 23,
    "personas.telling": 2,
    "personas.borrowed": 3,
    "personas.replay": 5,
    "judges.cascade": 1,
    "judges.question": 1,
    "judges.answer": 1,
    "scoring.transcript": 2,
    "scoring.echoes": 1,
    "scoring.gates": 4,
    "scoring.aggregate": 1,
    "scoring.compose": 1,
    "reward_models.segments": 1,
}
"""The judges that compute have their own versions (`StateJudge.version`, ...)."""

ASKING = ("personas.reading", "judges.question", "judges.answer", "scoring.transcript", "scoring.gates")
"""What makes a transcript a question to a language model (prompt, what is shown of it), and an answer a decision."""


@cache
def engine_digest() -> str:
    """Names all revisions."""
    return digest_of(REVISIONS)


@cache
def asking_digest() -> str:
    """Names the revisions that decisions of language models rest on."""
    return digest_of(ASKING)


def digest_of(modules: Iterable[str]) -> str:
    """A SHA-256 hash of the revisions of these modules, in hexadecimal."""
    return hashlib.sha256(json.dumps({name: REVISIONS[name] for name in sorted(modules)}).encode()).hexdigest()
