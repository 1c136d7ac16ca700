"""The budget of a lab for language models in a day (UTC), in tokens and in money.

Before a question is sent its estimate is booked, in one step with the check; afterwards what was used is charged in its
place. Both are in a ledger that outlives the process. A booking counts for as long as its question may take: that of a
process that died runs out by itself, and costs the lab nothing. What could not be charged because the ledger was away
is owed, and charged before anything else is booked. The last question of a day may use more than its estimate, so the
overdraft is at most that of the questions on their way at once. Without a ceiling everything fits, and what labs spend
is known all the same.
"""

from __future__ import annotations

import asyncio
import math
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from reward_server.clock import Clock, until_midnight_s
from reward_server.errors import BudgetExhausted, BudgetTooSmall, StoreUnavailable
from reward_server.llm.base import ProviderRequest, TokenUsage
from reward_server.logs.logger import get_logger
from reward_server.store.records import NO_CEILING, BookingRow, Ceiling, Spend

BYTES_PER_TOKEN = 3
"""Of English, a token has about 4.5 bytes; of most other text no less than 3."""
OVERHEAD_TOKENS = 256
"""The schema, and what a provider adds."""
NANO_USD_PER_TOKEN = 1000
"""One USD per million tokens, per token."""
NANO_USD_PER_USD = NANO_USD_PER_TOKEN * 1_000_000

LASTS_S = 3600.0
"""Of a booking that nobody settles. No call is given more time than the longest deadline, an hour."""

AGAIN_AFTER_S = (0.1, 0.5, 2.0)
"""Between attempts to settle. Each waits for a lock by itself; together they stay far within what a booking lasts."""

log = get_logger(__name__)


class Ledger(Protocol):
    """The store of spending."""

    async def book(self, booking: BookingRow, now: datetime, ceiling: Ceiling) -> Ceiling | None:
        """Book if the day's spending and what is booked stay within the ceiling, as one step.

        Returns: None if it was booked, else the ceiling that stands in its way: the lab's own, if it has one.

        Raises:
            StoreUnavailable: nothing was booked.
        """

    async def settle(self, booking: BookingRow, used: Spend, *, calls: int) -> None:
        """Charge what was used, by so many calls, in the place of the booking.

        Raises:
            StoreUnavailable: nothing was changed.
        """


class Priced(Protocol):
    """The prices of tokens."""

    def of(self, usage: TokenUsage) -> Spend:
        """The price of this many tokens."""


@dataclass(frozen=True, slots=True)
class Prices:
    """USD per million tokens."""

    usd_per_mtok_in: float = 0.0
    usd_per_mtok_out: float = 0.0

    def of(self, usage: TokenUsage) -> Spend:
        """The price of this many tokens; cached ones cost as much as others, which is never too little."""
        nano_usd = NANO_USD_PER_TOKEN * (
            usage.input_tokens * self.usd_per_mtok_in + usage.output_tokens * self.usd_per_mtok_out
        )
        return Spend(tokens=usage.input_tokens + usage.output_tokens, nano_usd=math.ceil(nano_usd))


@dataclass(frozen=True, slots=True)
class Booking:
    """An estimate that was booked."""

    row: BookingRow
    estimate: TokenUsage


@dataclass(frozen=True, slots=True)
class _Debt:
    """The tokens that were used and are not charged yet, in the place of this booking."""

    row: BookingRow
    used: Spend
    calls: int


class Budget:
    """Every lab's budget of the day."""

    def __init__(
        self,
        ledger: Ledger,
        clock: Clock,
        ceiling: Ceiling,
        prices: Priced,
        *,
        lasts_s: float = LASTS_S,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Args: lasts_s: how long a booking counts that nobody settles; longer than any call takes."""
        self._ledger = ledger
        self._clock = clock
        self._ceiling = ceiling
        self._prices = prices
        self._lasts = timedelta(seconds=lasts_s)
        self._sleep = sleep
        self._owed: list[_Debt] = []
        """Never long: while the ledger is away nothing is booked, so nothing is sent that could be owed."""
        self._left: set[asyncio.Task[None]] = set()
        """Charges on their way whose callers were cancelled."""

    @property
    def is_limited(self) -> bool:
        """True if there is anything that labs may not pass."""
        return self._ceiling != NO_CEILING

    async def book(self, lab_id: str, question: ProviderRequest) -> Booking:
        """Book the estimate of a question, once all that is owed has been charged.

        Raises:
            BudgetExhausted: it would not fit; says how long it is until midnight.
            BudgetTooSmall: it would fit on no day, alone or with those that are asked together with it.
            StoreUnavailable: the ledger cannot be used.
        """
        await self.charge_owed()
        now, estimate = self._clock.now().astimezone(UTC), estimate_of(question)
        row = BookingRow(
            booking_id=secrets.token_hex(16),
            lab_id=lab_id,
            day=now.date(),
            spend=self._prices.of(estimate),
            runs_out_at=now + self._lasts,
        )
        in_the_way = await self._ledger.book(row, now, self._ceiling)
        if in_the_way is not None:
            raise _refusal(row.spend, question.together, in_the_way, until_midnight_s(now))
        return Booking(row, estimate)

    async def settle(self, booking: Booking, usage: TokenUsage, *, calls: int = 1) -> None:
        """Charge what was used; try a few times where the ledger cannot be used.

        After that it is owed, as it is after any other error. Until it is charged the booking stands, at most for as
        long as bookings last. Whoever is cancelled leaves it owed, too, or an attempt behind that goes on by itself.
        """
        debt = _Debt(booking.row, self._prices.of(usage), calls)
        self._owed.append(debt)
        for wait_s in (0.0, *AGAIN_AFTER_S):
            if wait_s:
                await self._sleep(wait_s)
            if debt not in self._owed:
                return  # whoever booked meanwhile has charged it
            with suppress(StoreUnavailable):
                await self._charge(debt)
                return
        tokens = usage.input_tokens + usage.output_tokens
        log.error("llm_spending_not_settled", lab_id=booking.row.lab_id, tokens=tokens, nano_usd=debt.used.nano_usd)

    async def charge_owed(self) -> None:
        """Charge what could not be charged when it was used.

        Raises:
            StoreUnavailable: something is still owed.
        """
        if self._left:
            await asyncio.wait(self._left)
        while self._owed:
            await self._charge(self._owed[0])

    async def _charge(self, debt: _Debt) -> None:
        # Not owed while it is on its way: nobody else may charge it. A task of its own, since a ledger that is
        # cancelled may have charged or not, and charging twice is as wrong as not at all.
        self._owed.remove(debt)
        paying = asyncio.create_task(self._pay(debt))
        try:
            await asyncio.shield(paying)
        except asyncio.CancelledError:
            if not paying.done():
                self._left.add(paying)
                paying.add_done_callback(self._forget)
            raise

    async def _pay(self, debt: _Debt) -> None:
        try:
            await self._ledger.settle(debt.row, debt.used, calls=debt.calls)
        except Exception:
            self._owed.append(debt)
            raise

    def _forget(self, paid: asyncio.Task[None]) -> None:
        self._left.discard(paid)
        if not paid.cancelled() and paid.exception() is not None:
            log.warning("llm_spending_owed", error=type(paid.exception()).__name__)


def _refusal(each: Spend, together: int, ceiling: Ceiling, until_midnight_s: int) -> BudgetExhausted:
    """The reason why a question was not booked: the day is spent, or no day is enough.

    The limit is told and what the question costs is not: it would say how long the rubric is.
    """
    if ceiling.tokens is not None and each.tokens * together > ceiling.tokens:
        limit = f"tokens_per_day is {ceiling.tokens:,}"
    elif ceiling.nano_usd is not None and each.nano_usd * together > ceiling.nano_usd:
        limit = f"usd_per_day is {ceiling.nano_usd / NANO_USD_PER_USD:g}"
    else:
        return BudgetExhausted(retry_after_s=until_midnight_s)
    told = f"One question to a language model costs more here than this lab may use in a whole day: {limit}."
    return BudgetTooSmall(
        f"{told} Send less text, or have the operator raise the limit.", retry_after_s=until_midnight_s
    )


def estimate_of(question: ProviderRequest) -> TokenUsage:
    """Tokens of a question as it is sent, and the most that may be answered."""
    return TokenUsage(
        input_tokens=math.ceil(question.size / BYTES_PER_TOKEN) + OVERHEAD_TOKENS, output_tokens=question.max_tokens
    )
