"""What a lab may spend on language models in a day (UTC), in tokens and in money.

Before a question is sent its estimate is booked, in one step with the check; afterwards what was used is charged in its
place. Both are in a ledger that outlives the process. A booking counts for as long as its question may take: that of a
process that died runs out by itself, and costs the lab nothing. The last question of a day may use more than its
estimate, so the overdraft is at most that of the questions on their way at once. Without a ceiling everything fits, and
what labs spend is known all the same.
"""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Protocol

from reward_server.clock import Clock
from reward_server.errors import BudgetExhausted, StoreUnavailable
from reward_server.llm.base import Question, Usage
from reward_server.store.records import NO_CEILING, BookingRow, Ceiling, Spend
from reward_server.telemetry.logs import get_logger

BYTES_PER_TOKEN = 3
"""Of English, a token has about 4.5 bytes; of most other text no less than 3."""
OVERHEAD_TOKENS = 256
"""The schema, and what a provider adds."""
NANO_USD_PER_TOKEN = 1000
"""One USD per million tokens, per token."""

LASTS_S = 3600.0
"""Of a booking that nobody settles. No call is given more time than the longest deadline, an hour."""

log = get_logger(__name__)


class Ledger(Protocol):
    """Where spending is kept."""

    async def book(self, booking: BookingRow, now: datetime, ceiling: Ceiling) -> bool:
        """Book if the day's spending and what is booked stay within the ceiling, as one step; whether it did.

        Raises:
            StoreUnavailable: nothing was booked.
        """

    async def settle(self, booking: BookingRow, used: Spend, *, calls: int) -> None:
        """Charge what was used, by so many calls, in the place of the booking.

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

    row: BookingRow
    estimate: Usage


class Budget:
    """Every lab's budget of the day."""

    def __init__(
        self, ledger: Ledger, clock: Clock, ceiling: Ceiling, prices: Prices, *, lasts_s: float = LASTS_S
    ) -> None:
        """Args: lasts_s: how long a booking counts that nobody settles; longer than any call takes."""
        self._ledger = ledger
        self._clock = clock
        self._ceiling = ceiling
        self._prices = prices
        self._lasts = timedelta(seconds=lasts_s)

    @property
    def is_limited(self) -> bool:
        """Whether there is anything that labs may not pass."""
        return self._ceiling != NO_CEILING

    async def book(self, lab_id: str, question: Question) -> Booking:
        """Book the estimate of a question.

        Raises:
            BudgetExhausted: it would not fit; says how long it is until midnight.
            StoreUnavailable: the ledger cannot be used.
        """
        now, estimate = self._clock.now().astimezone(UTC), estimate_of(question)
        row = BookingRow(
            booking_id=secrets.token_hex(16),
            lab_id=lab_id,
            day=now.date(),
            spend=self._prices.of(estimate),
            runs_out_at=now + self._lasts,
        )
        if not await self._ledger.book(row, now, self._ceiling):
            raise BudgetExhausted(retry_after_s=_until_midnight_s(now))
        return Booking(row, estimate)

    async def settle(self, booking: Booking, usage: Usage, *, calls: int = 1) -> None:
        """Charge what was used; if the ledger cannot be used, the booking runs out and nothing is charged."""
        try:
            await self._ledger.settle(booking.row, self._prices.of(usage), calls=calls)
        except StoreUnavailable:
            tokens = usage.input_tokens + usage.output_tokens
            log.warning("llm_spending_not_settled", lab_id=booking.row.lab_id, tokens=tokens)


def estimate_of(question: Question) -> Usage:
    """Tokens of a question as it is sent, and the most that may be answered."""
    size = len(question.system.encode("utf-8", "replace")) + len(question.user.encode("utf-8", "replace"))
    return Usage(input_tokens=math.ceil(size / BYTES_PER_TOKEN) + OVERHEAD_TOKENS, output_tokens=question.max_tokens)


def _until_midnight_s(now: datetime) -> int:
    midnight = datetime.combine(now.date() + timedelta(days=1), time(), UTC)
    return max(1, math.ceil((midnight - now).total_seconds()))
