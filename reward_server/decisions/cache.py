"""Decisions as JSON, for whoever keeps them, and back; what is no decision on its questions is not used."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol

from reward_server.decisions.questions import AnswerProbabilities, Request, Typed, canonical
from reward_server.decisions.reading import distribution


class DecisionCache(Protocol):
    """The store of decisions, in memory and beyond; the first one on a key stays."""

    async def decision(
        self, key: str, lab_id: str, usable: Callable[[Any], bool], decide: Callable[[], Coroutine[Any, Any, Any]]
    ) -> Any:
        """Return the decision under the key if it is usable, else what `decide` says, which is then kept."""


def key_of(version: str, request: Request) -> str:
    """Of the model's version and the content, and of nothing else: no lab, no time."""
    return hashlib.sha256(canonical(["decisions", version, request.digest]).encode()).hexdigest()


def to_json(decided: Mapping[str, AnswerProbabilities]) -> Any:
    """By name, the probabilities."""
    return {name: dict(each.probabilities) for name, each in decided.items()}


def from_json(questions: Mapping[str, Typed], kept: Any) -> dict[str, AnswerProbabilities] | None:
    """The decisions that were kept; None where they are none on these questions."""
    if not isinstance(kept, dict) or set(kept) != set(questions):
        return None
    read = {
        name: distribution(question, kept[name]) if isinstance(kept[name], dict) else None
        for name, question in questions.items()
    }
    decided = {name: each for name, each in read.items() if isinstance(each, AnswerProbabilities)}
    return decided if len(decided) == len(questions) else None
