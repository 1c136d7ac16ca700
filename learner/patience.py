"""Waiting for a server that is away: a restart or an upgrade must not cost a run.

The client retries for some seconds. What it then gives up on because nobody answers is asked again
here, with the same idempotency key, for minutes, and it is said that the run waits.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from learner.display import Say, silent
from trainer_client import ConnectionFailed, LabsError, Unavailable

T = TypeVar("T")
SAY_EVERY_S = 15.0


@dataclass
class Patience:
    """How long a server may be away."""

    seconds: float = 600.0
    pause_s: float = 2.0
    say: Say = silent
    _said_at: float = field(default=-SAY_EVERY_S, init=False)

    async def ask(self, call: Callable[[str], Awaitable[T]]) -> T:
        """The answer of `call`, which gets the idempotency key; raises its error when patience is over."""
        key, since = f"learner-{uuid.uuid4().hex}", time.monotonic()
        while True:
            try:
                return await call(key)
            except (ConnectionFailed, Unavailable) as error:
                waited = time.monotonic() - since
                if waited >= self.seconds:
                    raise
                self._tell(error, waited)
            await asyncio.sleep(self.pause_s)

    def _tell(self, error: LabsError, waited: float) -> None:
        now = time.monotonic()
        if now - self._said_at >= SAY_EVERY_S:
            self._said_at = now
            self.say(
                f"the server does not answer ({error.code}); waiting up to {self.seconds / 60:.0f} min,"
                f" {waited:.0f} s so far"
            )
