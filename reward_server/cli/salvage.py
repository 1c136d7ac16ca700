"""Settings as far as they can be read, for `labs doctor`: what is wrong is named and left out, the rest looked at."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from reward_server.errors import ConfigurationError
from reward_server.settings import PREFIX, Settings, load_settings

_NAMED = re.compile(rf"\b({PREFIX}[A-Z0-9_]+):")
_ASKING = (f"{PREFIX}LLM_", f"{PREFIX}PERSONA_VOICE", f"{PREFIX}VOICE_")
"""Settings that fit together or not; the message names one of them, which may be the one that is missing."""


@dataclass(frozen=True)
class UsableSettings:
    """Settings, and what they are without."""

    settings: Settings
    problem: str | None = None
    left_out: frozenset[str] = frozenset()
    """Variables that were left out."""


def salvaged(overrides: Mapping[str, Any]) -> UsableSettings:
    """The settings; where some are wrong, those of all others.

    Raises:
        ConfigurationError: what is wrong is not a variable that could be left out.
    """
    try:
        return UsableSettings(load_settings(overrides))
    except ConfigurationError as error:
        problem = error.message
    left_out = _wrong(problem)
    try:
        with _without(left_out):
            return UsableSettings(load_settings(overrides), problem, left_out)
    except ConfigurationError:
        raise ConfigurationError(problem) from None


def _wrong(problem: str) -> frozenset[str]:
    """The variables that a message names, with all that belong to the same thing."""
    named = set(_NAMED.findall(problem))
    if any(name.startswith(_ASKING) for name in named):
        named |= {name for name in os.environ if name.upper().startswith(_ASKING)}
    return frozenset(name for name in os.environ if name.upper() in {each.upper() for each in named})


@contextmanager
def _without(names: frozenset[str]) -> Iterator[None]:
    kept = {name: os.environ.pop(name) for name in names}
    try:
        yield
    finally:
        os.environ.update(kept)
