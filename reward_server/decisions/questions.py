"""The types of a decision: a state, typed questions about it, and per question probabilities or why there are none.

What is decided about is data (the state); what is asked is ours (the questions). A decision is never a bare number:
it is a distribution over the options of its question, checked by `reading`, or a failure of a kind of its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from reward_server.llm.base import FailureKind, TokenUsage

YES, NO = "true", "false"
MOST_OPTIONS, MOST_LEVELS = 255, 10
"""Of the protocol."""
TOKENS_AN_ANSWER = 16
"""What an answer is reckoned at before it is known: some servers count a few tokens for each."""


@dataclass(frozen=True, slots=True, repr=False)
class YesNoQuestion:
    """A yes-or-no question, with what each answer means where that needs words."""

    asks: str
    yes: str | None = None
    no: str | None = None
    kind: str = field(default="", compare=False)
    """What is asked by it, such as `criterion`: a map of `maps` holds for one kind. No server is told."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The answers that there are."""
        return YES, NO


@dataclass(frozen=True, slots=True, repr=False)
class ChoiceQuestion:
    """One of several options, each with its description or none."""

    asks: str
    options: tuple[tuple[str, str | None], ...]
    kind: str = field(default="", compare=False)
    """What is asked by it, such as `criterion`: a map of `maps` holds for one kind. No server is told."""

    def __post_init__(self) -> None:
        """Refuse what no server could answer."""
        if not 2 <= len(dict(self.options)) == len(self.options) <= MOST_OPTIONS:
            raise ValueError(f"a choice is between 2 and {MOST_OPTIONS} different options")

    @property
    def labels(self) -> tuple[str, ...]:
        """The answers that there are."""
        return tuple(label for label, _ in self.options)


@dataclass(frozen=True, slots=True, repr=False)
class LevelQuestion:
    """A level of several, from low to high."""

    asks: str
    levels: tuple[str, ...]
    kind: str = field(default="", compare=False)
    """What is asked by it, such as `criterion`: a map of `maps` holds for one kind. No server is told."""

    def __post_init__(self) -> None:
        """Refuse what no server could answer."""
        if not 2 <= len(self.levels) <= MOST_LEVELS:
            raise ValueError(f"a score has between 2 and {MOST_LEVELS} levels")

    @property
    def labels(self) -> tuple[str, ...]:
        """The numbers of the levels, from 0."""
        return tuple(map(str, range(len(self.levels))))


Typed = YesNoQuestion | ChoiceQuestion | LevelQuestion


@dataclass(frozen=True, slots=True, repr=False)
class AnswerProbabilities:
    """The probability of each answer; they sum to 1."""

    probabilities: Mapping[str, float]

    @property
    def yes(self) -> float:
        """Of a predicate: how likely it is true."""
        return self.probabilities[YES]

    @property
    def best(self) -> str:
        """The likeliest answer; of equals, the first."""
        return max(self.probabilities, key=self.probabilities.__getitem__)

    @property
    def expectation(self) -> float:
        """Of a score: the mean level."""
        return sum(int(level) * p for level, p in self.probabilities.items())


@dataclass(frozen=True, slots=True)
class Undecided:
    """The reason why a question has no answer."""

    kind: FailureKind
    retry_after_s: float | None = None


Outcome = AnswerProbabilities | Undecided


@dataclass(frozen=True, repr=False)
class Request:
    """A state and questions about it, as an adapter is given them."""

    state: Any
    """JSON: a text, an object or an array."""
    questions: Mapping[str, Typed]
    together: int = 1

    @cached_property
    def state_text(self) -> str:
        """The state as text; an object as one line of JSON."""
        return self.state if isinstance(self.state, str) else canonical(self.state)

    @cached_property
    def size(self) -> int:
        """Bytes of text."""
        asked = sum(len(written(each).encode("utf-8", "replace")) for each in self.questions.values())
        return len(self.state_text.encode("utf-8", "replace")) + asked

    @property
    def max_tokens(self) -> int:
        """The most that may be answered, about."""
        return TOKENS_AN_ANSWER * len(self.questions)

    @cached_property
    def digest(self) -> str:
        """Of everything that may change an answer."""
        asked = {name: written(each) for name, each in self.questions.items()}
        return hashlib.sha256(canonical([self.state, asked]).encode("utf-8", "replace")).hexdigest()


@dataclass(frozen=True, slots=True, repr=False)
class DecisionReply:
    """The answer of a server: one outcome per question that it said anything about."""

    outcomes: Mapping[str, Outcome]
    model: str
    """The model that it says answered."""
    usage: TokenUsage = field(default_factory=TokenUsage)


class DecisionProvider(Protocol):
    """One decision model behind one server, asked once per call."""

    @property
    def name(self) -> str:
        """The adapter: `systemone`, `openai`, `chat`, `local`."""

    @property
    def model(self) -> str:
        """The model that is asked, by the name that its server knows."""

    @property
    def endpoint(self) -> str:
        """The address that is asked: scheme, host and path, without credentials."""

    @property
    def most_questions(self) -> int:
        """In one request."""

    @property
    def most_options(self) -> int:
        """Of one question."""

    async def complete(self, question: Request, timeout_s: float) -> DecisionReply:
        """One attempt; raises `LlmFailed`."""

    async def close(self) -> None:
        """Release connections."""


class Decider(Protocol):
    """A decision model with everything that belongs around it; what the reader and the judges use."""

    @property
    def name(self) -> str:
        """Adapter and model, such as `systemone/laya`."""

    @property
    def version(self) -> str:
        """Changes whenever its decisions may; begins with the name."""

    async def decide(
        self, state: Any, questions: Mapping[str, Typed], *, lab_id: str
    ) -> Mapping[str, AnswerProbabilities]:
        """A decision on every question; kept by content and version.

        Raises:
            LlmFailed: a question got none, with the kind of the first such failure.
            BudgetExhausted: the lab may not spend more today.
        """


def canonical(value: Any) -> str:
    """JSON on one line, in the order that is given: what stands first is what a server's prefix cache may hold."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def written(question: Typed) -> str:
    """All that a question says, as one text."""
    match question:
        case YesNoQuestion(asks, yes, no):
            return canonical(["predicate", asks, yes, no])
        case ChoiceQuestion(asks, options):
            return canonical(["choice", asks, options])
        case LevelQuestion(asks, levels):
            return canonical(["score", asks, levels])
