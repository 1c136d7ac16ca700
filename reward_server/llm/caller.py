"""Surrounds a call of a language model: deadline, retries, breaker, concurrency, budget, single flight.

What failed on the way is tried again here and nowhere else: the adapters and their SDKs make one attempt per call, and
what a model answered wrong is for whoever reads the answer to ask again (`judges.asking`). All attempts of a question
and the pauses between them count against one deadline. Waiting for a free place does not: a batch of hundreds has
to wait, and what asks (a request, a job) has a deadline of its own. A failure leaves as what it is; nothing here makes
up an answer.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Generic, Protocol, TypeVar

from reward_server.errors import BudgetExhausted, StoreUnavailable
from reward_server.llm.answers import strict_schema
from reward_server.llm.base import (
    TRANSIENT,
    Answer,
    ChatProvider,
    FailureKind,
    LlmFailed,
    Provider,
    ProviderAnswer,
    ProviderRequest,
    Question,
    TokenUsage,
)
from reward_server.llm.breaker import Breaker
from reward_server.llm.budget import Booking, Budget
from reward_server.llm.fair_semaphore import FairSemaphore
from reward_server.llm.single_flight import SingleFlight

ASKING = ("answers", "anthropic_provider", "openai_provider", "transport")
"""The modules of this package whose program text says how a provider is asked and what is read in its answer."""

BACK_OFF_S = 0.5
MAX_BACK_OFF_S = 8.0
SHARE_OF_AN_ATTEMPT = 0.5
"""Of the time left, while there are attempts left: a lost request must not use up the whole deadline."""

SETTLED_WITHIN_S = 3.0
"""An answer waits no longer for its charge. The store waits 2.5 s for a lock; what takes longer goes on by itself."""

MOST_LEFT_OUT = 3
"""A model may refuse temperature, seed and the cache's key, and says so of one at a time."""

AskedT = TypeVar("AskedT", bound=ProviderRequest)
AnswerT = TypeVar("AnswerT", bound=ProviderAnswer)


class CallMeter(Protocol):
    """Is told what happens; metrics implement it."""

    def attempted(self, provider: str, outcome: str, seconds: float, usage: TokenUsage) -> None:
        """One attempt ended: `answered`, `cancelled` or the kind of failure."""

    def failed(self, provider: str, kind: str) -> None:
        """A question got no answer."""

    def shared(self, provider: str) -> None:
        """A question was under way already."""

    def refused(self, provider: str) -> None:
        """A question was not sent: no budget."""

    def breaker_moved(self, provider: str, cause: str | None) -> None:
        """Note the state of the breaker: open after this failure, or closed (None)."""


class SilentMeter:
    """A meter that nobody reads."""

    def attempted(self, provider: str, outcome: str, seconds: float, usage: TokenUsage) -> None:
        """Nothing."""

    def failed(self, provider: str, kind: str) -> None:
        """Nothing."""

    def shared(self, provider: str) -> None:
        """Nothing."""

    def refused(self, provider: str) -> None:
        """Nothing."""

    def breaker_moved(self, provider: str, cause: str | None) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True)
class CallLimits:
    """The limits on calls, in time, number and concurrency."""

    deadline_s: float = 30.0
    """For a question with all its attempts, not counting the time it waits for a place."""
    retries: int = 2
    """Further attempts after failures that may pass."""
    concurrency: int = 16


@dataclass(frozen=True, slots=True)
class ClockAndJitter:
    """Clock, sleep and jitter of retries, handed in so that tests need neither time nor chance."""

    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = field(default_factory=lambda: random.SystemRandom().random)
    """Uniform in [0, 1)."""


class ProviderCaller(Generic[AskedT, AnswerT]):
    """One provider of whatever is asked and answered, with everything that belongs around it."""

    def __init__(
        self,
        provider: Provider[AskedT, AnswerT],
        limits: CallLimits,
        digest: Callable[[AskedT], str],
        *,
        budget: Budget | None = None,
        breaker: Breaker | None = None,
        meter: CallMeter | None = None,
        timing: ClockAndJitter | None = None,
    ) -> None:
        self._provider = provider
        self._limits = limits
        self._digest = digest
        self._budget = budget
        self._timing = timing or ClockAndJitter()
        self._breaker = breaker or Breaker(self._timing.monotonic)
        self._meter = meter or SilentMeter()
        self._attempt_ended = asyncio.Event()
        self._semaphore = FairSemaphore(limits.concurrency)
        self._flights: SingleFlight[AnswerT | LlmFailed | BudgetExhausted] = SingleFlight()
        self._settling: set[asyncio.Task[None]] = set()

    @property
    def name(self) -> str:
        """Provider and model."""
        return f"{self._provider.name}/{self._provider.model}"

    def describe(self) -> Mapping[str, Any]:
        """Describe it for operators."""
        return {
            "provider": self._provider.name,
            "model": self._provider.model,
            "endpoint": self._provider.endpoint,
            "deadline_s": self._limits.deadline_s,
            "retries": self._limits.retries,
            "concurrency": self._limits.concurrency,
            "budget": self._budget is not None and self._budget.is_limited,
            "breaker": str(self._breaker.state),
        }

    async def ask(self, question: AskedT, *, lab_id: str, sample: int = 0) -> AnswerT:
        """The answer, within the deadline; see `LanguageModel`."""
        key = (lab_id, self._digest(question), sample)
        if self._flights.is_under_way(key):
            self._meter.shared(self._provider.name)
        outcome = await self._flights.do(key, lambda: self._answered(question, lab_id))
        # A copy for each who waits: one exception raised in several tasks would collect their tracebacks.
        if isinstance(outcome, BudgetExhausted):
            raise copy(outcome)
        if isinstance(outcome, LlmFailed):
            raise LlmFailed(outcome.kind, retry_after_s=outcome.retry_after_s)
        return outcome

    async def close(self) -> None:
        """Let what was used be settled, and close the connections."""
        if self._settling:
            await asyncio.wait(self._settling)
        if self._budget is not None:
            with suppress(StoreUnavailable):
                await self._budget.charge_owed()
        await self._provider.close()

    async def _answered(self, question: AskedT, lab_id: str) -> AnswerT | LlmFailed | BudgetExhausted:
        outcome = await self._asked_until_answered(question, lab_id)
        if isinstance(outcome, LlmFailed):
            self._meter.failed(self._provider.name, outcome.kind)
        elif isinstance(outcome, BudgetExhausted):
            self._meter.refused(self._provider.name)
        return outcome

    async def _asked_until_answered(self, question: AskedT, lab_id: str) -> AnswerT | LlmFailed | BudgetExhausted:
        ends = self._timing.monotonic() + self._limits.deadline_s
        again, left_out = 0, 0
        happened: LlmFailed | None = None
        while True:
            waited_since = self._timing.monotonic()
            await self._semaphore.take(lab_id)
            ends += self._timing.monotonic() - waited_since
            outcome = await self._asked_once(question, lab_id, ends, last=again == self._limits.retries)
            if not isinstance(outcome, LlmFailed):
                return outcome
            if outcome.kind is FailureKind.BREAKER_OPEN and happened is not None:
                # What it was asked and how that failed says more than that it was not asked once more.
                return LlmFailed(happened.kind, retry_after_s=outcome.retry_after_s)
            if outcome.kind in TRANSIENT and again < self._limits.retries:
                delay = self._back_off_s(again, outcome)
                again, happened = again + 1, outcome
            elif left_out < MOST_LEFT_OUT and _is_put_otherwise(outcome):
                delay, left_out = 0.0, left_out + 1
            else:
                return outcome
            if self._timing.monotonic() + delay >= ends:
                return outcome
            await self._timing.sleep(delay)

    def _back_off_s(self, again: int, failed: LlmFailed) -> float:
        """Exponential with full jitter, so that callers that failed together do not come back together."""
        ceiling = min(MAX_BACK_OFF_S, BACK_OFF_S * 2.0**again)
        return max(ceiling * self._timing.jitter(), failed.retry_after_s or 0.0)

    async def _asked_once(
        self, question: AskedT, lab_id: str, ends: float, *, last: bool
    ) -> AnswerT | LlmFailed | BudgetExhausted:
        """One attempt at the place that was taken, to settling what it cost; gives the place back."""
        try:
            await self._shown_how_things_are(ends)
            with self._breaker.watching():
                return await self._paid_for(question, lab_id, ends, last=last)
        except (LlmFailed, BudgetExhausted) as outcome:
            return outcome.with_traceback(None)
        finally:
            self._attempt_ended.set()  # wakes those who wait, then is as before
            self._attempt_ended.clear()
            self._semaphore.give_back()
            self._meter.breaker_moved(self._provider.name, self._breaker.cause)

    async def _shown_how_things_are(self, ends: float) -> None:
        """Wait while another question probes a provider that failed.

        The questions of one request go out together: were all but the probe refused, the request would fail, the
        probe be cancelled with it, and nothing ever be learnt.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(max(ends - self._timing.monotonic(), 0.001)):
                while self._breaker.is_probing:
                    await self._attempt_ended.wait()

    async def _paid_for(self, question: AskedT, lab_id: str, ends: float, *, last: bool) -> AnswerT:
        booking = None if self._budget is None else await self._booked(self._budget, lab_id, question)
        began = self._timing.monotonic()
        left = max(ends - began, 0.001)
        used, outcome = None, "cancelled"
        try:
            answer = await self._provider.complete(question, left if last else left * SHARE_OF_AN_ATTEMPT)
            used, outcome = answer.usage, "answered"
        except LlmFailed as failed:
            used, outcome = failed.usage or TokenUsage(), str(failed.kind)
            raise
        else:
            return answer
        finally:
            self._meter.attempted(self._provider.name, outcome, self._timing.monotonic() - began, used or TokenUsage())
            if booking is not None and self._budget is not None:
                await self._settle(self._budget, booking, _charged(booking, outcome, used))

    async def _booked(self, budget: Budget, lab_id: str, question: AskedT) -> Booking:
        """Book; if whoever waits for it leaves meanwhile, what was booked is given back."""
        booking = asyncio.create_task(budget.book(lab_id, question))
        try:
            return await asyncio.shield(booking)
        except asyncio.CancelledError:
            self._finish(_given_back(budget, booking))
            raise

    def _finish(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do this even if nobody waits for it; `close` does."""
        task = asyncio.create_task(work)
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)
        return task

    async def _settle(self, budget: Budget, booking: Booking, usage: TokenUsage) -> None:
        """Settle, even if whoever waits for it leaves; nobody waits for long."""
        done, _ = await asyncio.wait([self._finish(budget.settle(booking, usage))], timeout=SETTLED_WITHIN_S)
        for settled in done:
            settled.result()


class LanguageModelCaller(ProviderCaller[Question, Answer]):
    """A `LanguageModel`: one chat provider with everything that belongs around it."""

    def __init__(
        self,
        provider: ChatProvider,
        limits: CallLimits,
        *,
        budget: Budget | None = None,
        breaker: Breaker | None = None,
        meter: CallMeter | None = None,
        timing: ClockAndJitter | None = None,
    ) -> None:
        super().__init__(provider, limits, digest_of, budget=budget, breaker=breaker, meter=meter, timing=timing)
        self.has_logprobs = provider.has_logprobs

    @property
    def version(self) -> str:
        """Of provider, model, endpoint and the way they are asked."""
        parts = (self._provider.name, self._provider.model, self._provider.endpoint)
        return f"llm_{_digest(_program(), *parts)[:12]}"


async def _given_back(budget: Budget, booking: asyncio.Task[Booking]) -> None:
    """Undo a booking that is still being made; one that fails needs nothing."""
    with suppress(BudgetExhausted, StoreUnavailable):
        await budget.settle(await booking, TokenUsage(), calls=0)


def _is_put_otherwise(failed: LlmFailed) -> bool:
    """True if the adapter now leaves out a setting that was refused."""
    return failed.kind is FailureKind.REJECTED and failed.retry_after_s == 0.0


def _charged(booking: Booking, outcome: str, used: TokenUsage | None) -> TokenUsage:
    """The tokens that a lab pays: those that were used, else none.

    An answer without usage costs its estimate. Whoever leaves pays for the reading: otherwise one could ask for
    nothing by always leaving.
    """
    if outcome == "cancelled":
        return TokenUsage(input_tokens=booking.estimate.input_tokens)
    if outcome == "answered" and used in (None, TokenUsage()):
        return booking.estimate
    return used or TokenUsage()


def digest_of(question: Question) -> str:
    """Of everything that may change the answer."""
    return _digest(
        question.system,
        question.user,
        question.schema.__qualname__,
        str(strict_schema(question.schema)),
        str(question.max_tokens),
        str(question.temperature),
        str(question.seed),
        str(question.logprobs),
    )


@cache
def _program() -> str:
    """Of the program that asks: a version to be raised by hand would be forgotten one day."""
    return _digest(*((files(__package__) / f"{name}.py").read_text(encoding="utf-8") for name in ASKING))


def _digest(*parts: str) -> str:
    """Of the parts with their lengths, so that no two lists of parts look alike."""
    hashed = hashlib.sha256()
    for part in parts:
        content = part.encode("utf-8", "surrogatepass")
        hashed.update(len(content).to_bytes(8, "big"))
        hashed.update(content)
    return hashed.hexdigest()
