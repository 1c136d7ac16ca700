"""A circuit breaker: a provider that keeps failing is left alone for a while, then asked once to see.

Counted are failures of the provider, in a row; what a model says wrong is no failure of its provider. No clock of
its own and no task: it decides when it is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum

from reward_server.llm.base import FailureKind, LlmFailed

FAILURES_TO_OPEN = 8
COOL_DOWN_S = 10.0

PROVIDERS_FAULT = frozenset(
    {
        FailureKind.RATE_LIMITED,
        FailureKind.OVERLOADED,
        FailureKind.TIMEOUT,
        FailureKind.RESET,
        FailureKind.HANG,
        FailureKind.UNAUTHORISED,
        FailureKind.NOT_FOUND,
    }
)
"""Another question would most likely fail as well."""


class State(StrEnum):
    """The state of the breaker."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"
    """Cooled down: one question may try."""


class Breaker:
    """The breaker of one provider."""

    def __init__(
        self,
        monotonic: Callable[[], float],
        *,
        failures_to_open: int = FAILURES_TO_OPEN,
        cool_down_s: float = COOL_DOWN_S,
    ) -> None:
        self._monotonic = monotonic
        self._failures_to_open = failures_to_open
        self._cool_down_s = cool_down_s
        self._failures = 0
        self._opened_at: float | None = None
        self._cause: FailureKind | None = None
        self._probing = False

    @property
    def state(self) -> State:
        """Open until it has cooled down, then half-open until one question has shown how things are."""
        if self._opened_at is None:
            return State.CLOSED
        return State.HALF_OPEN if self._left_s() <= 0 else State.OPEN

    @property
    def cause(self) -> FailureKind | None:
        """The failure that opened it; None while it is closed."""
        return self._cause

    @property
    def is_probing(self) -> bool:
        """True if one question is out to show how things are: others do well to wait for what it shows."""
        return self._probing

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Around one attempt: learns from how it ends. One that is cancelled says nothing.

        Raises:
            LlmFailed: `breaker_open`, before the attempt is made.
        """
        probe = self._enter()
        try:
            yield
        except LlmFailed as failed:
            if failed.kind in PROVIDERS_FAULT:
                self._failed(failed.kind)
            else:
                self._worked()
            raise
        else:
            self._worked()
        finally:
            if probe:
                self._probing = False

    def _enter(self) -> bool:
        """True if this attempt is the probe."""
        state = self.state
        if state is State.OPEN or (state is State.HALF_OPEN and self._probing):
            raise LlmFailed(FailureKind.BREAKER_OPEN, retry_after_s=max(self._left_s(), 0.0))
        self._probing = self._probing or state is State.HALF_OPEN
        return state is State.HALF_OPEN

    def _left_s(self) -> float:
        return 0.0 if self._opened_at is None else self._opened_at + self._cool_down_s - self._monotonic()

    def _worked(self) -> None:
        self._failures = 0
        self._opened_at = self._cause = None

    def _failed(self, kind: FailureKind) -> None:
        self._failures += 1
        # What was under way when it opened must not prolong it; a probe that fails opens it anew.
        if self.state is not State.OPEN and self._failures >= self._failures_to_open:
            self._opened_at, self._cause = self._monotonic(), kind
