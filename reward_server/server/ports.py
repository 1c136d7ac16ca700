"""Ports of a server, built in beside its settings: the real thing, or what tests hand in."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Protocol, TextIO

from personas.reading.matcher import Matcher
from personas.reading.reader import Reader
from reward_server.clock import Clock, SystemClock
from reward_server.llm.base import LanguageModel
from reward_server.scoring.disclosure import DisclosurePolicy
from reward_server.scoring.scorer import Scorer
from reward_server.server.engine import ExtraJudges, build_scorer
from reward_server.telemetry.traces import Traces
from scenarios.library import Library


def _random_seed() -> int:
    return secrets.randbits(63)


class ScorerBuilder(Protocol):
    """As `build_scorer`."""

    def __call__(
        self,
        library: Library,
        matcher: Matcher,
        reader: Reader,
        threads: Executor,
        *,
        disclosure: DisclosurePolicy,
        guests: ExtraJudges,
    ) -> Scorer:
        """The scorer on these parts."""


@dataclass(frozen=True)
class Ports:
    """Replacements that tests hand in; None means the real thing."""

    clock: Clock = field(default_factory=SystemClock)
    new_seed: Callable[[], int] = _random_seed
    matcher: Matcher | None = None
    reader: Reader | None = None
    library: Library | None = None
    language_model: LanguageModel | None = None
    build_scorer: ScorerBuilder = build_scorer
    log_stream: TextIO | None = None
    serves: bool = True
    """Whether it answers requests; else it only does jobs, and others may use its database."""
    turn: Callable[[AsyncExitStack], Awaitable[None]] | None = None
    """Waited for by a standby that has loaded everything; it holds the database from then on."""
    traces: Traces | None = None
    own_process: bool = True
    """Whether the process is the server's own, so that its heap may be tuned and its caches warmed."""
