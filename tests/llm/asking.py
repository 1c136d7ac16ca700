"""What the tests ask, a provider without a network, and time that only moves when it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, Field

from reward_server.llm.base import Answer, LlmFailed, Question, TokenUsage
from reward_server.llm.breaker import Breaker
from reward_server.llm.budget import Budget
from reward_server.llm.caller import CallLimits, ClockAndJitter, LanguageModelCaller

SECRET_KEY = "sk-ant-NeverShowThisKeyToAnybody-0123456789"
PRIVATE = "the patient hides a second prescription"


class Found(BaseModel):
    """One criterion's answer."""

    id: str
    met: bool
    turn: int = Field(ge=0, le=50)
    quote: str


class Verdicts(BaseModel):
    """An answer with a number."""

    found: list[Found]
    score: float = Field(ge=0.0, le=1.0)


GOOD: dict[str, Any] = {
    "found": [{"id": "c1", "met": True, "turn": 1, "quote": "How are you?"}],
    "score": 0.5,
}


def a_question(**changes: Any) -> Question:
    given: dict[str, Any] = {"system": f"Rubric: {PRIVATE}", "user": "Hello.", "schema": Verdicts, "max_tokens": 100}
    return Question(**(given | changes))


def an_answer(**changes: Any) -> Answer:
    given: dict[str, Any] = {
        "parsed": Verdicts.model_validate(GOOD),
        "text": "{}",
        "model": "m",
        "usage": TokenUsage(10, 5),
    }
    return Answer(**(given | changes))


class Time:
    """Monotonic seconds; sleeping moves them."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def timing(self, jitter: float = 1.0) -> ClockAndJitter:
        return ClockAndJitter(monotonic=self.monotonic, sleep=self.sleep, jitter=lambda: jitter)


Step = Answer | LlmFailed | Callable[[], Awaitable[Answer]]


@dataclass
class FakeProvider:
    """Does one step per call; the last one is kept."""

    script: list[Step]
    name: str = "fake"
    model: str = "m"
    endpoint: str = "http://127.0.0.1"
    has_logprobs: bool = False
    asked: list[Question] = field(default_factory=list)
    given_s: list[float] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    cancelled: int = 0
    closed: bool = False

    async def complete(self, question: Question, timeout_s: float) -> Answer:
        step = self.script[min(len(self.asked), len(self.script) - 1)]
        self.asked.append(question)
        self.given_s.append(timeout_s)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return await self._do(step)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.at_once -= 1

    async def _do(self, step: Step) -> Answer:
        if isinstance(step, LlmFailed):
            raise LlmFailed(step.kind, retry_after_s=step.retry_after_s, usage=step.usage)
        return step if isinstance(step, Answer) else await step()

    async def close(self) -> None:
        self.closed = True


@dataclass
class Heard:
    """A meter that remembers."""

    attempts: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    shares: int = 0
    refusals: int = 0
    breaker: list[str | None] = field(default_factory=list)
    usage: TokenUsage = field(default_factory=TokenUsage)

    def attempted(self, provider: str, outcome: str, seconds: float, usage: TokenUsage) -> None:
        self.attempts.append(outcome)
        self.usage += usage

    def failed(self, provider: str, kind: str) -> None:
        self.failures.append(kind)

    def shared(self, provider: str) -> None:
        self.shares += 1

    def refused(self, provider: str) -> None:
        self.refusals += 1

    def breaker_moved(self, provider: str, cause: str | None) -> None:
        self.breaker.append(cause)


@dataclass
class Desk:
    """A caller on a fake provider, and everything to look at."""

    provider: FakeProvider
    time: Time = field(default_factory=Time)
    heard: Heard = field(default_factory=Heard)

    def caller(
        self,
        *,
        budget: Budget | None = None,
        failures_to_open: int = 100,
        deadline_s: float = 30.0,
        retries: int = 2,
        concurrency: int = 16,
        jitter: float = 1.0,
    ) -> LanguageModelCaller:
        return LanguageModelCaller(
            self.provider,
            CallLimits(deadline_s=deadline_s, retries=retries, concurrency=concurrency),
            budget=budget,
            breaker=Breaker(self.time.monotonic, failures_to_open=failures_to_open, cool_down_s=10.0),
            meter=self.heard,
            timing=self.time.timing(jitter),
        )


def a_desk(*script: Step) -> Desk:
    return Desk(FakeProvider(list(script)))


async def turns_of_the_loop(count: int = 20) -> None:
    """Let every task run until it waits for something."""
    for _ in range(count):
        await asyncio.sleep(0)
