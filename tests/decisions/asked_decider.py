"""A decision model in memory: a function decides each question, or says why not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reward_server.decisions.questions import AnswerProbabilities, Typed, YesNoQuestion
from reward_server.llm.base import FailureKind, LlmFailed

Says = Callable[[str, Typed, Any], "AnswerProbabilities | FailureKind | None"]


def yes(p: float) -> AnswerProbabilities:
    return AnswerProbabilities({"true": p, "false": 1 - p})


def picks(question: Typed, label: str, p: float = 0.9) -> AnswerProbabilities:
    """The label with this probability; the rest is shared out."""
    others = [each for each in question.labels if each != label]
    return AnswerProbabilities({label: p, **dict.fromkeys(others, (1 - p) / len(others))})


class MemoryDecider:
    """None from the function is a no, or the first option."""

    name = "memory/m"
    version = "memory/m@1"

    def __init__(self, says: Says) -> None:
        self._says = says
        self.asked: list[tuple[Any, Mapping[str, Typed]]] = []
        self.labs: list[str] = []

    async def decide(
        self, state: Any, questions: Mapping[str, Typed], *, lab_id: str
    ) -> Mapping[str, AnswerProbabilities]:
        self.asked.append((state, questions))
        self.labs.append(lab_id)
        found = {name: self._one(name, question, state) for name, question in questions.items()}
        return found

    def _one(self, name: str, question: Typed, state: Any) -> AnswerProbabilities:
        said = self._says(name, question, state)
        if isinstance(said, FailureKind):
            raise LlmFailed(said)
        if said is not None:
            return said
        return yes(0.05) if isinstance(question, YesNoQuestion) else picks(question, question.labels[0])
