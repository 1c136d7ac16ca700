"""What a lab may spend on language models in a day (UTC), in tokens and in money.

Before a question is sent its estimate is booked, in one step with the check; afterwards the booking is corrected to
what was used. Bookings are in a ledger that outlives the process. A process that dies between the two leaves its
estimate booked: a lab may lose a few tokens then, but never gets any beyond its budget. The last question of a day may
use more than its estimate, so the overdraft is at most that of the questions on their way at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Protocol

from reward_server.clock import Clock
from reward_server.errors import BudgetExhausted, StoreUnavailable
from reward_server.llm.base import Question, Usage
from reward_server.store.records import Ceiling, Spend
from reward_server.telemetry.logs import get_logger

BYTES_PER_TOKEN = 3
"""Of English, a token has about 4.5 bytes; of most other text no less than 3."""
OVERHEAD_TOKENS = 256
"""The schema, and what a provider adds."""
NANO_USD_PER_TOKEN = 1000
"""One USD per million tokens, per token."""

log = get_logger(__name__)


class Ledger(Protocol):
    """Where spending is kept."""

    async def book(self, lab_id: str, day: date, spend: Spend, ceiling: Ceiling) -> bool:
        """Add the spend if the day's total stays within the ceiling, as one step; whether it did.

        Raises:
            StoreUnavailable: nothing was booked.
        """

    async def correct(self, lab_id: str, day: date, change: Spend) -> None:
        """Add a change, which may be negative, to what was booked.

        Raises:
            StoreUnavailable: nothing was changed.
        """


@dataclass(frozen=True, slots=True)
class Prices:
    """USD per million tokens."""

    usd_per_mtok_in: float = 0.0
    usd_per_mtok_out: float = 0.0

    def of(self, usage: Usage) -> Spend:
        """What this many tokens cost; cached ones as much as others, which is never too little."""
        nano_usd = NANO_USD_PER_TOKEN * (
            usage.input_tokens * self.usd_per_mtok_in + usage.output_tokens * self.usd_per_mtok_out
        )
        return Spend(tokens=usage.input_tokens + usage.output_tokens, nano_usd=math.ceil(nano_usd))


@dataclass(frozen=True, slots=True)
class Booking:
    """An estimate that was booked."""

    lab_id: str
    day: date
    estimate: Usage


class Budget:
    """Every lab's budget of the day."""

    def __init__(self, ledger: Ledger, clock: Clock, ceiling: Ceiling, prices: Prices) -> None:
        self._ledger = ledger
        self._clock = clock
        self._ceiling = ceiling
        self._prices = prices

    async def book(self, lab_id: str, question: Question) -> Booking:
        """Book the estimate of a question.

        Raises:
            BudgetExhausted: it would not fit; says how long it is until midnight.
            StoreUnavailable: the ledger cannot be used.
        """
        now = self._clock.now().astimezone(UTC)
        booking = Booking(lab_id, now.date(), estimate_of(question))
        if not await self._ledger.book(lab_id, booking.day, self._prices.of(booking.estimate), self._ceiling):
            raise BudgetExhausted(retry_after_s=_until_midnight_s(now))
        return booking

    async def settle(self, booking: Booking, usage: Usage) -> None:
        """Correct the booking to what was used; if the ledger cannot be used, the estimate stays booked."""
        booked, used = self._prices.of(booking.estimate), self._prices.of(usage)
        change = Spend(tokens=used.tokens - booked.tokens, nano_usd=used.nano_usd - booked.nano_usd)
        if change == Spend():
            return
        try:
            await self._ledger.correct(booking.lab_id, booking.day, change)
        except StoreUnavailable:
            log.warning("llm_spending_not_settled", lab_id=booking.lab_id, tokens=change.tokens)


def estimate_of(question: Question) -> Usage:
    """Tokens of a question as it is sent, and the most that may be answered."""
    size = len(question.system.encode("utf-8", "replace")) + len(question.user.encode("utf-8", "replace"))
    return Usage(input_tokens=math.ceil(size / BYTES_PER_TOKEN) + OVERHEAD_TOKENS, output_tokens=question.max_tokens)


def _until_midnight_s(now: datetime) -> int:
    midnight = datetime.combine(now.date() + timedelta(days=1), time(), UTC)
    return max(1, math.ceil((midnight - now).total_seconds()))
