"""What is asked of a language model about one dimension of a transcript, and the key its decision is kept under.

All `judge` criteria of a dimension are asked together, whichever of them a request wants, so that a verdict does
not depend on the request's weights. The model sees ids that mean nothing (c1, c2, …), never the author's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reward_server.judges.base import Case
from reward_server.judges.prompt import JUDGE_RULES, system_text, transcript_json, user_text
from reward_server.judges.reading import JudgeAnswer
from reward_server.judges.verdict_cache import key_of
from reward_server.llm.base import FailureKind, Question
from scenarios.schema import Criterion

TOKENS_AROUND, TOKENS_A_QUESTION = 1024, 256
"""Room for an answer: what a model writes about one criterion, and what it may think before."""


@dataclass(frozen=True, slots=True, repr=False)
class Inquiry:
    """The criteria of one dimension, as they are put to the model."""

    criteria: tuple[Criterion, ...]
    system: str
    transcript: str
    """One line of JSON."""
    temperature: float
    key: str

    def __repr__(self) -> str:
        return f"<Inquiry: {len(self.criteria)} criteria>"

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids the model is asked to answer under."""
        return tuple(f"c{number}" for number in range(1, len(self.criteria) + 1))

    def question(self, secret: bytes, seed: int, mistake: FailureKind | None, *, logprobs: bool) -> Question:
        """The question, or, after a mistake, the question asked again."""
        room = TOKENS_AROUND + TOKENS_A_QUESTION * len(self.criteria)
        return Question(
            system=self.system,
            user=user_text({"": self.transcript}, secret, mistake),
            schema=JudgeAnswer,
            max_tokens=2 * room if mistake is FailureKind.TRUNCATED else room,
            temperature=self.temperature,
            seed=seed,
            logprobs=logprobs,
        )


def inquiries(case: Case, criteria: Sequence[Criterion], version: str, temperature: float) -> list[Inquiry]:
    """What has to be asked to decide `criteria`; `LlmFailed` if the transcript is too long to be sent."""
    transcript = transcript_json(case.transcript)
    groups: dict[tuple[str, ...], tuple[Criterion, ...]] = {}
    for dimension in dict.fromkeys(criterion.dimension for criterion in criteria):
        wanted = [criterion for criterion in criteria if criterion.dimension == dimension]
        own = tuple(c for c in case.scenario.secrets.rubric.criteria if c.dimension == dimension and _asks(c))
        others = tuple(c for c in wanted if c not in own)  # asked in place of a cheaper check that was unsure
        for group in (own if len(others) < len(wanted) else (), others):
            if group:
                groups[tuple(criterion.id for criterion in group)] = group
    return [_inquiry(case, group, transcript, version, temperature) for group in groups.values()]


def _asks(criterion: Criterion) -> bool:
    return criterion.check.judge is not None


def _inquiry(case: Case, group: tuple[Criterion, ...], transcript: str, version: str, temperature: float) -> Inquiry:
    questions = [
        {"id": f"c{number}", "question": criterion.check.judge.question}
        for number, criterion in enumerate(group, 1)
        if criterion.check.judge is not None
    ]
    system = system_text(JUDGE_RULES, case.scenario.card, "The questions:", questions)
    parts = {
        "what": "verdicts",
        "judge": version,
        "temperature": temperature,
        "scenario": [case.scenario.name, case.scenario.version],
        "system": system,
        "either_or": [criterion.cap is not None for criterion in group],
        "transcript": transcript,
    }
    return Inquiry(group, system, transcript, temperature, key_of(parts))
