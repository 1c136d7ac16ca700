"""Decisions by the packaged text encoder: no server, no network, and no more understanding than likeness.

Each text of the state is compared with what a question's options say. It is here so that everything that decides runs
on any machine, and as what a model has to beat; the packaged reader, which is trained, reads turns far better.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reward_server.decisions.questions import (
    MOST_OPTIONS,
    NO,
    YES,
    AnswerProbabilities,
    ChoiceQuestion,
    DecisionReply,
    Request,
    Typed,
    YesNoQuestion,
)
from reward_server.llm.base import FailureKind, LlmFailed

MIDDLE, SLOPE = 0.35, 12.0
"""Of the logistic curve from likeness (cosine) to the probability of a yes: the middle of the `similar` checks."""
TEMPERATURE = 0.08
"""Of the likenesses of options."""
LEAST_LETTERS = 2

Cosine = Callable[[Sequence[str], Sequence[str]], NDArray[Any]]


class LocalDecisions:
    """`DecisionProvider` on a text encoder."""

    name = "local"
    most_questions = 10_000
    most_options = MOST_OPTIONS
    endpoint = "here"

    def __init__(self, cosine: Cosine, version: str) -> None:
        self._cosine = cosine
        self.model = version

    async def complete(self, question: Request, timeout_s: float) -> DecisionReply:
        """Computed in a thread."""
        said = [text for text in _texts(question.state) if sum(map(str.isalnum, text)) >= LEAST_LETTERS]
        if not said:
            raise LlmFailed(FailureKind.EMPTY)
        outcomes = await asyncio.to_thread(
            lambda: {name: self._decided(each, said) for name, each in question.questions.items()}
        )
        return DecisionReply(outcomes, self.model)

    async def close(self) -> None:
        """Nothing is held."""

    def _decided(self, question: Typed, said: Sequence[str]) -> AnswerProbabilities:
        if isinstance(question, YesNoQuestion):
            # What yes and no mean says nothing without the question: many questions share one wording of both.
            likeness = float(self._cosine(said, [question.asks]).max())
            yes = 1 / (1 + math.exp(-SLOPE * (likeness - MIDDLE)))
            return AnswerProbabilities({YES: yes, NO: 1 - yes})
        texts = (
            [text or label for label, text in question.options]
            if isinstance(question, ChoiceQuestion)
            else question.levels
        )
        weights = np.exp(self._cosine(said, list(texts)).max(axis=0).astype(float) / TEMPERATURE)
        shares = weights / weights.sum()
        return AnswerProbabilities(dict(zip(question.labels, shares.tolist(), strict=True)))


def _texts(state: Any) -> Iterator[str]:
    """All texts of a state."""
    if isinstance(state, str):
        yield state
    elif isinstance(state, dict):
        for value in state.values():
            yield from _texts(value)
    elif isinstance(state, (list, tuple)):
        for value in state:
            yield from _texts(value)
