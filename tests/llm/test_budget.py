"""Budgets on a real store: exact under concurrency, hard, durable, corrected to what was used."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta

import pytest

from reward_server.clock import ManualClock
from reward_server.errors import BudgetExhausted, StoreUnavailable
from reward_server.llm import budget as budget_module
from reward_server.llm import caller as caller_module
from reward_server.llm.base import Answer, FailureKind, LlmFailed, Question, TokenUsage
from reward_server.llm.budget import AGAIN_AFTER_S, Budget, Prices, estimate_of
from reward_server.llm.durable import StoredLedger, StoredVerdicts
from reward_server.store.records import BookingRow, Ceiling, Spend
from reward_server.store.store import Store
from tests.llm.asking import Desk, a_desk, a_question, an_answer, turns_of_the_loop

K = FailureKind
DAY = date(2026, 1, 1)
ESTIMATE = estimate_of(a_question()).input_tokens + 100


@pytest.fixture
def url(sqlite_database: str) -> str:
    return sqlite_database


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    async with opened(url) as store:
        yield store


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    store = await Store.open(url)
    yield store
    await store.close()


def a_budget(
    store: Store, tokens: int | None = 10_000, nano_usd: int | None = None, *, clock: ManualClock | None = None
) -> Budget:
    ceiling = Ceiling(tokens=tokens, nano_usd=nano_usd)
    return Budget(StoredLedger(store), clock or ManualClock(), ceiling, Prices(3.0, 15.0))


async def spent(store: Store, lab_id: str = "acme", day: date = DAY) -> Spend:
    async with store.reading() as work:
        return await work.spending.of(lab_id, day)


def questions(count: int) -> list[Question]:
    return [a_question(user=f"{number:06}") for number in range(count)]


async def outcomes(desk: Desk, budget: Budget, asked: list[Question], lab_id: str = "acme") -> list[object]:
    caller = desk.caller(budget=budget)
    return list(await asyncio.gather(*(caller.ask(one, lab_id=lab_id) for one in asked), return_exceptions=True))


async def test_what_was_used_is_what_was_spent(store: Store) -> None:
    await outcomes(a_desk(an_answer(usage=TokenUsage(1000, 200, 900))), a_budget(store), [a_question()])
    assert await spent(store) == Spend(tokens=1200, nano_usd=1000 * 3000 + 200 * 15000)
    assert await spent(store, "other") == Spend()


async def test_fifty_at_once_get_exactly_what_fits(store: Store) -> None:
    """Each uses what it was estimated to: so many fit, and not one more."""
    estimate = estimate_of(questions(1)[0])
    each = estimate.input_tokens + estimate.output_tokens
    gate = asyncio.Event()
    arrived = 0

    async def held() -> Answer:
        nonlocal arrived
        arrived += 1
        await gate.wait()
        return an_answer(usage=estimate)

    desk = a_desk(held)
    caller = desk.caller(budget=a_budget(store, tokens=each * 7 + each - 1), concurrency=50)
    asking = [asyncio.create_task(caller.ask(one, lab_id="acme")) for one in questions(50)]
    done, _ = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
    while len(done) < 43:
        done, _ = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED, timeout=0.01)
    gate.set()
    found = await asyncio.gather(*asking, return_exceptions=True)
    assert arrived == 7
    assert sum(isinstance(outcome, BudgetExhausted) for outcome in found) == 43
    assert await spent(store) == Spend(tokens=each * 7, nano_usd=Prices(3.0, 15.0).of(estimate).nano_usd * 7)
    assert desk.heard.refusals == 43


async def test_fifty_that_use_less_than_estimated_leave_an_exact_sum(store: Store) -> None:
    found = await outcomes(a_desk(an_answer(usage=TokenUsage(11, 3))), a_budget(store, tokens=10**6), questions(50))
    assert all(isinstance(outcome, Answer) for outcome in found)
    assert await spent(store) == Spend(tokens=50 * 14, nano_usd=50 * (11 * 3000 + 3 * 15000))


async def test_money_is_a_limit_of_its_own(store: Store) -> None:
    price = Prices(3.0, 15.0).of(estimate_of(a_question())).nano_usd
    desk = a_desk(an_answer())
    assert isinstance((await outcomes(desk, a_budget(store, None, price - 1), [a_question()]))[0], BudgetExhausted)
    assert desk.provider.asked == []
    assert isinstance((await outcomes(desk, a_budget(store, None, price), [a_question()]))[0], Answer)


async def test_labs_do_not_spend_each_others_budget(store: Store) -> None:
    budget = a_budget(store, tokens=ESTIMATE)
    desk = a_desk(an_answer(usage=TokenUsage(ESTIMATE, 0)))
    await outcomes(desk, budget, [a_question()], "acme")
    assert isinstance((await outcomes(desk, budget, [a_question()], "acme"))[0], BudgetExhausted)
    assert isinstance((await outcomes(desk, budget, [a_question()], "other"))[0], Answer)


async def test_a_restart_forgets_nothing(url: str) -> None:
    for _ in range(2):
        async with opened(url) as store:
            await outcomes(
                a_desk(an_answer(usage=TokenUsage(400, 0))), a_budget(store, 800 + ESTIMATE - 1), [a_question()]
            )
    async with opened(url) as store:
        assert (await spent(store)).tokens == 800
        found = await outcomes(a_desk(an_answer()), a_budget(store, 800 + ESTIMATE - 1), [a_question()])
    assert isinstance(found[0], BudgetExhausted)


async def test_the_stop_says_how_long_until_midnight_and_midnight_ends_it(store: Store) -> None:
    clock = ManualClock(datetime(2026, 1, 1, 23, 58, 30, tzinfo=UTC))
    budget = a_budget(store, tokens=ESTIMATE, clock=clock)
    desk = a_desk(an_answer(usage=TokenUsage(ESTIMATE, 0)))
    await outcomes(desk, budget, [a_question()])
    (refused,) = await outcomes(desk, budget, [a_question()])
    assert isinstance(refused, BudgetExhausted)
    assert refused.retry_after_s == 90
    clock.advance(timedelta(seconds=90))
    assert isinstance((await outcomes(desk, budget, [a_question()]))[0], Answer)


async def test_what_is_settled_after_midnight_belongs_to_the_day_it_was_asked(store: Store) -> None:
    clock = ManualClock(datetime(2026, 1, 1, 23, 59, 59, tzinfo=UTC))

    async def over_midnight() -> Answer:
        clock.advance(timedelta(seconds=2))
        return an_answer(usage=TokenUsage(7, 0))

    await outcomes(a_desk(over_midnight), a_budget(store, clock=clock), [a_question()])
    assert (await spent(store)).tokens == 7
    assert (await spent(store, day=date(2026, 1, 2))) == Spend()


@pytest.mark.parametrize(
    ("step", "tokens"),
    [
        (LlmFailed(K.REFUSED), 0),
        (LlmFailed(K.UNAUTHORISED), 0),
        (LlmFailed(K.REFUSED, usage=TokenUsage(20, 4)), 24),
        (an_answer(usage=TokenUsage()), ESTIMATE),
    ],
    ids=["failed", "refused our key", "failed but was paid", "usage unknown"],
)
async def test_a_failure_costs_what_the_provider_says_and_an_answer_at_least_its_estimate(
    store: Store, step: Answer | LlmFailed, tokens: int
) -> None:
    await outcomes(a_desk(step), a_budget(store), [a_question()])
    assert (await spent(store)).tokens == tokens


async def test_every_attempt_is_paid_for(store: Store) -> None:
    step = LlmFailed(K.EMPTY, usage=TokenUsage(20, 4))
    await outcomes(a_desk(step), a_budget(store), [a_question()])
    assert (await spent(store)).tokens == 72


async def test_what_is_left_may_end_between_two_attempts(store: Store) -> None:
    step = LlmFailed(K.EMPTY, usage=TokenUsage(ESTIMATE, 0))
    desk = a_desk(step)
    assert isinstance((await outcomes(desk, a_budget(store, ESTIMATE + 1), [a_question()]))[0], BudgetExhausted)
    assert len(desk.provider.asked) == 1


async def test_whoever_leaves_pays_for_the_reading(store: Store) -> None:
    async def never() -> Answer:
        await asyncio.Event().wait()
        return an_answer()

    desk = a_desk(never)
    caller = desk.caller(budget=a_budget(store))
    asking = asyncio.create_task(caller.ask(a_question(), lab_id="acme"))
    while not desk.provider.asked:
        await turns_of_the_loop(1)
    asking.cancel()
    while not desk.provider.cancelled:
        await turns_of_the_loop(1)
    await turns_of_the_loop()
    await caller.close()
    assert (await spent(store)).tokens == ESTIMATE - 100


class SlowLedger:
    """Books when it is let."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.booked: list[BookingRow] = []
        self.settled: list[tuple[BookingRow, Spend, int]] = []

    async def book(self, booking: BookingRow, now: datetime, ceiling: Ceiling) -> Ceiling | None:
        await self.gate.wait()
        self.booked.append(booking)
        return None

    async def settle(self, booking: BookingRow, used: Spend, *, calls: int) -> None:
        self.settled.append((booking, used, calls))


async def test_whoever_leaves_before_anything_was_sent_pays_nothing() -> None:
    ledger = SlowLedger()
    desk = a_desk(an_answer())
    caller = desk.caller(budget=Budget(ledger, ManualClock(), Ceiling(tokens=10**6), Prices()))
    asking = asyncio.create_task(caller.ask(a_question(), lab_id="acme"))
    await turns_of_the_loop()
    asking.cancel()
    await turns_of_the_loop()
    ledger.gate.set()
    await caller.close()
    assert desk.provider.asked == []
    assert [booking.spend.tokens for booking in ledger.booked] == [ESTIMATE]
    assert ledger.settled == [(ledger.booked[0], Spend(), 0)]


class ClosedLedger:
    """Cannot be used."""

    async def book(self, booking: BookingRow, now: datetime, ceiling: Ceiling) -> Ceiling | None:
        raise StoreUnavailable

    async def settle(self, booking: BookingRow, used: Spend, *, calls: int) -> None:
        raise StoreUnavailable


async def test_a_ledger_that_cannot_be_used_sends_nothing() -> None:
    budget = Budget(ClosedLedger(), ManualClock(), Ceiling(tokens=10**6), Prices())
    desk = a_desk(an_answer())
    (outcome,) = await outcomes(desk, budget, [a_question()])
    assert isinstance(outcome, StoreUnavailable)
    assert desk.provider.asked == []


class AbsentLedger:
    """A real one that is away for so many attempts to settle."""

    def __init__(self, store: Store, times: int) -> None:
        self._stored = StoredLedger(store)
        self.times = times
        self.tried = 0

    async def book(self, booking: BookingRow, now: datetime, ceiling: Ceiling) -> Ceiling | None:
        return await self._stored.book(booking, now, ceiling)

    async def settle(self, booking: BookingRow, used: Spend, *, calls: int) -> None:
        self.tried += 1
        if self.tried <= self.times:
            raise StoreUnavailable
        await self._stored.settle(booking, used, calls=calls)


FOR_GOOD = 1000
TRIES = 1 + len(AGAIN_AFTER_S)


def an_absent_ledger(store: Store, times: int, desk: Desk, tokens: int | None = 10_000) -> tuple[Budget, AbsentLedger]:
    ledger = AbsentLedger(store, times)
    budget = Budget(ledger, ManualClock(), Ceiling(tokens=tokens), Prices(), lasts_s=90.0, sleep=desk.time.sleep)
    return budget, ledger


async def booked(store: Store) -> int:
    async with store.reading() as work:
        return (await work.spending.booked("acme", DAY, ManualClock().now())).tokens


async def test_a_ledger_that_is_away_for_a_moment_is_tried_again(store: Store) -> None:
    desk = a_desk(an_answer(usage=TokenUsage(7, 2)))
    budget, _ = an_absent_ledger(store, TRIES - 1, desk)
    (outcome,) = await outcomes(desk, budget, [a_question()])
    assert isinstance(outcome, Answer)
    assert desk.time.slept == [0.1, 0.5, 2.0]
    assert ((await spent(store)).tokens, await booked(store)) == (9, 0)


async def test_what_cannot_be_settled_stays_booked_and_is_charged_before_the_next_booking(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged: list[tuple[str, dict[str, object]]] = []
    monkeypatch.setattr(
        budget_module.log, "error", lambda event, **fields: logged.append((event, fields)), raising=False
    )
    desk = a_desk(an_answer(usage=TokenUsage(7, 2)))
    budget, ledger = an_absent_ledger(store, FOR_GOOD, desk, tokens=ESTIMATE + 8)
    (outcome,) = await outcomes(desk, budget, [a_question()])
    assert isinstance(outcome, Answer)
    assert ledger.tried == TRIES
    assert ((await spent(store)).tokens, await booked(store)) == (0, ESTIMATE)
    assert logged == [("llm_spending_not_settled", {"lab_id": "acme", "tokens": 9, "nano_usd": 0})]
    ledger.times = 0
    (outcome,) = await outcomes(desk, budget, [a_question()])
    assert isinstance(outcome, BudgetExhausted)
    assert ((await spent(store)).tokens, await booked(store)) == (9, 0)


async def test_while_something_is_owed_and_cannot_be_charged_nothing_is_sent(store: Store) -> None:
    desk = a_desk(an_answer())
    budget, _ = an_absent_ledger(store, FOR_GOOD, desk)
    found = [(await outcomes(desk, budget, [a_question()]))[0] for _ in range(2)]
    assert [type(outcome) for outcome in found] == [Answer, StoreUnavailable]
    assert len(desk.provider.asked) == 1


async def test_what_is_owed_at_the_end_is_charged_when_the_server_stops(store: Store) -> None:
    desk = a_desk(an_answer(usage=TokenUsage(7, 2)))
    budget, _ = an_absent_ledger(store, TRIES, desk)
    caller = desk.caller(budget=budget)
    await caller.ask(a_question(), lab_id="acme")
    assert (await spent(store)).tokens == 0
    await caller.close()
    assert (await spent(store)).tokens == 9


async def test_settling_that_is_cancelled_between_two_attempts_is_owed_and_charged_once(store: Store) -> None:
    desk = a_desk(an_answer())

    async def for_ever(seconds: float) -> None:
        await asyncio.Event().wait()

    ledger = AbsentLedger(store, 1)
    budget = Budget(ledger, ManualClock(), Ceiling(), Prices(), sleep=for_ever)
    booking = await budget.book("acme", a_question())
    settling = asyncio.create_task(budget.settle(booking, TokenUsage(7, 2)))
    while not ledger.tried:
        await turns_of_the_loop(1)
    await turns_of_the_loop()
    settling.cancel()
    await asyncio.wait([settling])
    assert (await spent(store)).tokens == 0
    await outcomes(desk, budget, [a_question()])
    assert (await spent(store)).tokens == 9 + 15


class HeldLedger(SlowLedger):
    """Takes its time to settle, and does not if it is cancelled, as a transaction that is rolled back."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.gate.set()
        self.settling = asyncio.Event()
        self.error = error

    async def settle(self, booking: BookingRow, used: Spend, *, calls: int) -> None:
        self.settling.set()
        await self.gate.wait()
        error, self.error = self.error, None
        if error is not None:
            raise error
        await super().settle(booking, used, calls=calls)


@pytest.mark.parametrize("error", [None, StoreUnavailable(), RuntimeError("a defect")], ids=["fine", "away", "defect"])
async def test_settling_that_is_cancelled_on_its_way_is_charged_once(error: Exception | None) -> None:
    ledger = HeldLedger(error)
    budget = Budget(ledger, ManualClock(), Ceiling(), Prices())
    booking = await budget.book("acme", a_question())
    ledger.gate.clear()
    settling = asyncio.create_task(budget.settle(booking, TokenUsage(7, 2)))
    await ledger.settling.wait()
    settling.cancel()
    await asyncio.wait([settling])
    assert settling.cancelled()
    asyncio.get_running_loop().call_later(0.01, ledger.gate.set)
    await budget.charge_owed()
    assert ledger.settled == [(booking.row, Spend(tokens=9), 1)]
    await budget.charge_owed()
    assert len(ledger.settled) == 1


async def test_what_an_error_kept_from_being_charged_is_owed() -> None:
    ledger = HeldLedger(RuntimeError("a defect"))
    budget = Budget(ledger, ManualClock(), Ceiling(), Prices())
    booking = await budget.book("acme", a_question())
    with pytest.raises(RuntimeError):
        await budget.settle(booking, TokenUsage(7, 2))
    await budget.charge_owed()
    assert ledger.settled == [(booking.row, Spend(tokens=9), 1)]


async def test_an_answer_does_not_wait_for_a_ledger_that_stays_away(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caller_module, "SETTLED_WITHIN_S", 0.01)
    back = asyncio.Event()

    async def until_back(seconds: float) -> None:
        await back.wait()

    budget = Budget(AbsentLedger(store, 1), ManualClock(), Ceiling(), Prices(), sleep=until_back)
    caller = a_desk(an_answer(usage=TokenUsage(7, 2))).caller(budget=budget)
    assert isinstance(await asyncio.wait_for(caller.ask(a_question(), lab_id="acme"), 5.0), Answer)
    assert (await spent(store)).tokens == 0
    back.set()
    await caller.close()
    assert (await spent(store)).tokens == 9


async def test_a_process_that_is_killed_during_a_call_charges_nobody_for_ever(url: str) -> None:
    """Nothing is settled and nothing is closed: as if by `kill -9`. The budget is that of the next process."""
    clock = ManualClock(datetime(2026, 1, 1, 12, tzinfo=UTC))
    async with opened(url) as store:
        await a_budget(store, ESTIMATE, clock=clock).book("acme", a_question())
    async with opened(url) as store:
        budget = Budget(StoredLedger(store), clock, Ceiling(tokens=ESTIMATE), Prices(), lasts_s=90.0)
        (outcome,) = await outcomes(a_desk(an_answer()), budget, [a_question()])
        assert isinstance(outcome, BudgetExhausted)
        clock.advance(timedelta(hours=1))
        (outcome,) = await outcomes(a_desk(an_answer(usage=TokenUsage(7, 0))), budget, [a_question()])
        assert isinstance(outcome, Answer)
        assert (await spent(store)).tokens == 7


async def test_calls_are_counted_whatever_came_of_them(store: Store) -> None:
    desk = a_desk(LlmFailed(K.OVERLOADED), an_answer(usage=TokenUsage(7, 0)))
    await outcomes(desk, a_budget(store, tokens=None), [a_question()])
    async with store.reading() as work:
        (row,) = await work.spending.since(DAY, datetime(2026, 1, 1, tzinfo=UTC))
    assert (row.lab_id, row.calls, row.spent.tokens, row.booked) == ("acme", 2, 7, Spend())


async def test_verdicts_outlive_the_process_and_the_first_stays(url: str) -> None:
    async with opened(url) as store:
        await StoredVerdicts(store, ManualClock()).put_many({"a" * 64: "1", "b" * 64: "2"})
    async with opened(url) as store:
        verdicts = StoredVerdicts(store, ManualClock())
        await verdicts.put_many({"a" * 64: "other", "c" * 64: "3"})
        assert await verdicts.get_many(["a" * 64, "c" * 64, "d" * 64]) == {"a" * 64: "1", "c" * 64: "3"}
