"""The circuit breaker: opens on a provider's failures in a row, tries once when it has cooled down."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from reward_server.llm.base import Answer, FailureKind, LlmFailed
from reward_server.llm.breaker import PROVIDERS_FAULT, Breaker, State
from reward_server.llm.caller import LanguageModelCaller
from tests.llm.asking import Desk, FakeProvider, Step, Time, a_desk, a_question, an_answer, turns_of_the_loop

K = FailureKind


def a_breaker(time: Time, failures_to_open: int = 3) -> Breaker:
    return Breaker(time.monotonic, failures_to_open=failures_to_open, cool_down_s=10.0)


def fails(breaker: Breaker, kind: FailureKind = K.OVERLOADED) -> FailureKind:
    """How an attempt ends that would fail like this."""
    with pytest.raises(LlmFailed) as caught, breaker.watching():
        raise LlmFailed(kind)
    return caught.value.kind


def works(breaker: Breaker) -> None:
    with breaker.watching():
        pass


@pytest.mark.parametrize("kind", sorted(PROVIDERS_FAULT))
def test_failures_in_a_row_open_it(kind: FailureKind) -> None:
    breaker = a_breaker(Time())
    for _ in range(3):
        assert breaker.state is State.CLOSED
        assert fails(breaker, kind) is kind
    assert breaker.state is State.OPEN
    assert fails(breaker, kind) is K.BREAKER_OPEN


def test_an_answer_in_between_starts_the_count_anew() -> None:
    breaker = a_breaker(Time())
    for _ in range(5):
        fails(breaker)
        fails(breaker)
        works(breaker)
    assert breaker.state is State.CLOSED


@pytest.mark.parametrize("kind", sorted(set(K) - PROVIDERS_FAULT - {K.BREAKER_OPEN}))
def test_what_a_model_says_wrong_is_no_failure_of_its_provider(kind: FailureKind) -> None:
    breaker = a_breaker(Time())
    for _ in range(10):
        fails(breaker, kind)
    assert breaker.state is State.CLOSED
    fails(breaker)
    fails(breaker)
    fails(breaker, kind)
    fails(breaker)
    assert breaker.state is State.CLOSED


def test_it_says_how_long_it_stays_open() -> None:
    time = Time()
    breaker = a_breaker(time, failures_to_open=1)
    fails(breaker)
    time.now += 4.0
    with pytest.raises(LlmFailed) as caught, breaker.watching():
        pass
    assert caught.value.retry_after_s == 6.0


def cooled(time: Time) -> Breaker:
    breaker = a_breaker(time)
    for _ in range(3):
        fails(breaker)
    time.now += 10.0
    return breaker


def test_cooled_down_one_may_try_and_an_answer_closes_it() -> None:
    breaker = cooled(Time())
    assert breaker.state is State.HALF_OPEN
    with breaker.watching():
        assert fails(breaker) is K.BREAKER_OPEN
    assert breaker.state is State.CLOSED
    fails(breaker)
    assert breaker.state is State.CLOSED


def test_one_that_tries_and_fails_opens_it_for_as_long_again() -> None:
    time = Time()
    breaker = cooled(time)
    assert fails(breaker) is K.OVERLOADED
    assert breaker.state is State.OPEN
    time.now += 9.9
    assert breaker.state is State.OPEN
    time.now += 0.2
    assert breaker.state is State.HALF_OPEN


def test_a_mistake_of_the_model_shows_that_its_provider_is_back() -> None:
    breaker = cooled(Time())
    fails(breaker, K.MALFORMED)
    assert breaker.state is State.CLOSED


def test_one_that_tries_and_is_cancelled_lets_another_try() -> None:
    breaker = cooled(Time())
    with pytest.raises(asyncio.CancelledError), breaker.watching():
        raise asyncio.CancelledError
    assert breaker.state is State.HALF_OPEN
    works(breaker)
    assert breaker.state is State.CLOSED


def test_what_was_under_way_when_it_opened_does_not_keep_it_open() -> None:
    time = Time()
    breaker = a_breaker(time, failures_to_open=1)

    def fail_late() -> None:
        with breaker.watching():
            fails(breaker)
            time.now += 5.0
            raise LlmFailed(K.OVERLOADED)

    with pytest.raises(LlmFailed):
        fail_late()
    time.now += 5.0
    assert breaker.state is State.HALF_OPEN


async def test_an_open_breaker_sends_nothing_and_a_question_says_so() -> None:
    desk = a_desk(LlmFailed(K.OVERLOADED))
    caller = desk.caller(failures_to_open=3, retries=2)
    with pytest.raises(LlmFailed) as caught:
        await caller.ask(a_question(), lab_id="acme")
    assert caught.value.kind is K.OVERLOADED
    with pytest.raises(LlmFailed) as caught:
        await caller.ask(a_question(), lab_id="other")
    assert caught.value.kind is K.BREAKER_OPEN
    assert len(desk.provider.asked) == 3
    assert caller.describe()["breaker"] == "open"
    assert desk.heard.failures == ["overloaded", "breaker_open"]
    assert desk.heard.breaker[-1] == "overloaded"


def test_its_cause_is_the_failure_that_opened_it_whatever_else_fails_meanwhile() -> None:
    time = Time()
    breaker = a_breaker(time, failures_to_open=2)
    fails(breaker, K.RESET)
    assert breaker.cause is None

    def fail_late() -> None:
        with breaker.watching():
            fails(breaker, K.RATE_LIMITED)
            raise LlmFailed(K.TIMEOUT)

    with pytest.raises(LlmFailed):
        fail_late()
    assert breaker.cause is K.RATE_LIMITED
    time.now += 10.0
    fails(breaker, K.UNAUTHORISED)
    assert breaker.cause is K.UNAUTHORISED
    time.now += 10.0
    works(breaker)
    assert breaker.cause is None


async def test_a_question_whose_retries_find_it_open_fails_as_what_happened_to_it() -> None:
    """That tells operators the cause; the time until asking is of use again is the breaker's."""
    desk = a_desk(LlmFailed(K.RATE_LIMITED))
    caller = desk.caller(failures_to_open=2, retries=2)
    with pytest.raises(LlmFailed) as caught:
        await caller.ask(a_question(), lab_id="acme")
    assert (caught.value.kind, caught.value.retry_after_s) == (K.RATE_LIMITED, 9.0)
    assert desk.heard.attempts == ["rate_limited", "rate_limited"]
    assert desk.heard.failures == ["rate_limited"]


class TimeForOthers(Time):
    """Others have their turn while one sleeps."""

    async def sleep(self, seconds: float) -> None:
        await turns_of_the_loop()
        await super().sleep(seconds)


async def test_a_question_that_another_ones_failures_keep_back_says_that_it_was_not_asked() -> None:
    """Its own refused setting is not why: without the breaker it would have been asked without that."""
    script: list[Step] = [LlmFailed(K.REJECTED, retry_after_s=0.0), LlmFailed(K.OVERLOADED)]
    desk = Desk(FakeProvider(script), time=TimeForOthers())
    caller = desk.caller(failures_to_open=1, retries=0, concurrency=1)
    asked = (caller.ask(a_question(user=str(n)), lab_id="acme") for n in range(2))
    found = await asyncio.gather(*asked, return_exceptions=True)
    assert [each.kind for each in found if isinstance(each, LlmFailed)] == [K.BREAKER_OPEN, K.OVERLOADED]


async def cooled_down(*steps: Step) -> tuple[Desk, LanguageModelCaller]:
    """A provider that failed until it was left alone, some time ago; what it does next."""
    desk = a_desk(*[LlmFailed(K.OVERLOADED)] * 3, *steps)
    caller = desk.caller(failures_to_open=3, retries=2)
    with pytest.raises(LlmFailed):
        await caller.ask(a_question(), lab_id="acme")
    desk.time.now += 10.0
    return desk, caller


def held(gate: asyncio.Event, outcome: Answer | LlmFailed) -> Callable[[], Awaitable[Answer]]:
    """A provider that takes its time."""

    async def step() -> Answer:
        await gate.wait()
        if isinstance(outcome, LlmFailed):
            raise outcome
        return outcome

    return step


async def test_after_the_cool_down_one_question_goes_out_and_the_others_wait_for_its_answer() -> None:
    gate = asyncio.Event()
    desk, caller = await cooled_down(held(gate, an_answer()), an_answer())
    asked = [asyncio.create_task(caller.ask(a_question(user=str(n)), lab_id="acme")) for n in range(3)]
    await turns_of_the_loop()
    assert len(desk.provider.asked) == 4
    gate.set()
    assert all(isinstance(answer, Answer) for answer in await asyncio.gather(*asked))
    assert len(desk.provider.asked) == 6
    assert desk.heard.breaker[-1] is None


async def test_those_who_wait_for_a_probe_that_fails_are_refused() -> None:
    gate = asyncio.Event()
    desk, caller = await cooled_down(held(gate, LlmFailed(K.UNAUTHORISED)))
    asked = [asyncio.create_task(caller.ask(a_question(user=str(n)), lab_id="acme")) for n in range(3)]
    await turns_of_the_loop()
    gate.set()
    found = await asyncio.gather(*asked, return_exceptions=True)
    assert [each.kind for each in found if isinstance(each, LlmFailed)] == [K.UNAUTHORISED, *[K.BREAKER_OPEN] * 2]
    assert len(desk.provider.asked) == 4


async def test_when_a_probe_is_cancelled_one_who_waits_takes_its_place() -> None:
    _, caller = await cooled_down(held(asyncio.Event(), an_answer()), an_answer())
    probe = asyncio.create_task(caller.ask(a_question(user="1"), lab_id="acme"))
    await turns_of_the_loop()
    other = asyncio.create_task(caller.ask(a_question(user="2"), lab_id="acme"))
    await turns_of_the_loop()
    probe.cancel()
    assert isinstance(await asyncio.wait_for(other, 5.0), Answer)
