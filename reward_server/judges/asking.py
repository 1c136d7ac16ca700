"""Asking a language model until it has answered properly, at most twice; and asking several things at once.

What goes wrong on the way (connections, limits, overload) is the model's `ask` to try again. What a model answered
wrong is asked again here and nowhere else, and once: no question of a judge costs more than two wrong answers, whether
the mistake is in the shape (no JSON, another schema, cut off) or only to be found by the reader (ids, turns, quotes).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from math import ceil
from typing import Any, TypeVar

from reward_server.errors import BudgetExhausted, BudgetTooSmall, JudgeFailed
from reward_server.llm.base import MISTAKES, TRANSIENT, Answer, FailureKind, LanguageModel, LlmFailed, Question

T = TypeVar("T")
ORDERS = 2
"""In which things are shown that are held against each other, so that a preference for a place cancels out."""
READ_WRONG = MISTAKES | {FailureKind.TOO_LARGE}
"""What a reader may find wrong that a model can be told; an answer without weights is none of its mistakes."""


async def ask_and_read(
    model: LanguageModel,
    put: Callable[[FailureKind | None], tuple[Question, Callable[[Answer], T]]],
    *,
    lab_id: str,
    sample: int,
) -> T:
    """Ask, and read the answer; a mistake of the model is told to it, and the question asked once more.

    `put` gives the question, after a mistake a second one, and how to read its answer, which is done in a thread.

    Raises:
        LlmFailed: there is no answer, or the second one is wrong, too.
        BudgetExhausted: the lab may not spend more.
    """
    mistake: FailureKind
    question, read = put(None)
    try:
        answer = await model.ask(question, lab_id=lab_id, sample=sample)
    except LlmFailed as failure:
        if failure.kind not in MISTAKES:
            raise
        mistake = failure.kind
    else:
        try:
            return await asyncio.to_thread(read, answer)
        except LlmFailed as failure:
            if failure.kind not in READ_WRONG:
                raise
            mistake = failure.kind
    question, read = put(mistake)
    answer = await model.ask(question, lab_id=lab_id, sample=sample)
    return await asyncio.to_thread(read, answer)


def no_answer(failure: LlmFailed) -> JudgeFailed:
    """The failure as a judge's own, with the time after which asking again may be of use, where that is known."""
    waits = failure.retry_after_s if failure.kind in TRANSIENT | {FailureKind.BREAKER_OPEN} else None
    return JudgeFailed(kind=failure.kind.value, retry_after_s=None if waits is None else max(1, ceil(waits)))


async def together(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """All results in order; the first failure cancels the rest and is raised, and so does being cancelled."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in work]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


async def as_far_as_paid_for(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """As `together`, for decisions that are kept one by one: where the budget ends, what is on its way is finished.

    So each day brings a conversation further whose questions come to more than the lab may use in one.
    """
    outcomes = await together([_or_refused(call) for call in work])
    refused = [outcome for outcome in outcomes if isinstance(outcome, BudgetExhausted)]
    if refused:
        raise refused[0]
    return [outcome for outcome in outcomes if not isinstance(outcome, BudgetExhausted)]


async def _or_refused(work: Coroutine[Any, Any, T]) -> T | BudgetExhausted:
    try:
        return await work
    except BudgetTooSmall:
        raise  # what no day has room for: nothing comes of the rest
    except BudgetExhausted as refused:
        return refused.with_traceback(None)
