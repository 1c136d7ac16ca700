"""Waiting for a server that is away or asks to wait: neither a restart nor a rate limit must cost a run.

The client retries for some seconds. What it then gives up on because nobody answers, or because the server asks it to
come back later, is asked again here, with the same idempotency key, for minutes, and it is said that the run waits. A
server that says how long to wait is not asked before; one that asks for more than `server.patience_s`, is not waited
for. The start of a run waits only for a server that answers, so that a wrong address is noticed at once.
"""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from learner.display import Say, silent
from trainer_client import ConnectionFailed, DeadlineExceeded, LabsError, RateLimited, Unavailable

T = TypeVar("T")
SAY_EVERY_S = 15.0
WAITED_FOR: tuple[type[LabsError], ...] = (ConnectionFailed, DeadlineExceeded, Unavailable, RateLimited)
"""The errors after which a call is asked again."""


@dataclass
class OutageRetryPolicy:
    """Retries of calls while the server is away: the longest wait of one call, all pauses together."""

    seconds: float = 600.0
    pause_s: float = 2.0
    say: Say = silent
    waits_for: tuple[type[LabsError], ...] = WAITED_FOR
    _said_at: float = field(default=-SAY_EVERY_S, init=False)
    _gave_up: bool = field(default=False, init=False)

    async def ask(self, call: Callable[[str], Awaitable[T]]) -> T:
        """Return the answer of `call`, which gets the idempotency key; raise its error when time is up."""
        key, since = f"learner-{uuid.uuid4().hex}", time.monotonic()
        while True:
            try:
                return await call(key)
            except self.waits_for as error:
                waited, told = time.monotonic() - since, error.retry_after_s or 0.0
                hopeless = not (error.retryable or told)  # a budget that no day has room for
                if hopeless or waited + max(told, self.pause_s) >= self.seconds:
                    self._give_up(told)
                    raise
                self._tell(error, waited)
            # Not all at once: a whole batch of episodes was told to wait for the same time.
            await asyncio.sleep(max(told, self.pause_s) + random.uniform(0.0, self.pause_s))  # noqa: S311 - jitter

    def _tell(self, error: LabsError, waited: float) -> None:
        now = time.monotonic()
        if now - self._said_at < SAY_EVERY_S:
            return
        self._said_at = now
        what = f"the server does not answer ({error.code})"
        if isinstance(error, RateLimited):
            what = f"the server limits requests ({error.code})"
        if error.retry_after_s:
            what += f" and asks to wait {error.retry_after_s:.0f} s"
        self.say(f"{what}; waiting up to {self.seconds / 60:.0f} min, {waited:.0f} s so far")

    def _give_up(self, told: float) -> None:
        if told >= self.seconds > 0 and not self._gave_up:
            self._gave_up = True
            self.say(
                f"the server asks to wait {told:.0f} s, longer than server.patience_s ({self.seconds:.0f} s) allows;"
                " these calls count as failed. Raise server.patience_s to wait for it"
            )
