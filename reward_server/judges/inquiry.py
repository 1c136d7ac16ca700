"""Inquiries to a language model about one dimension of a transcript, and the key that a decision is kept under.

All `judge` criteria of a dimension are asked together, whichever of them a request wants, and so are all those that
other checks fall back on, so that a verdict does not depend on the request's weights. The model sees ids that
mean nothing (c1, c2, …), never the author's.

It is shown what the agent did without talk about the evaluation (`rendering`); the rest reaches it as data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from personas.reading.reader import Reader
from reward_server.judges.base import Case
from reward_server.judges.cascade import at_step, check_at
from reward_server.judges.prompt import JUDGE_RULES, system_text, transcript_json, user_text
from reward_server.judges.reading import JudgeAnswer
from reward_server.judges.rendering import as_shown
from reward_server.judges.verdict_cache import key_of
from reward_server.llm.base import FailureKind, Question
from reward_server.transcripts.transcript import Transcript
from scenarios.schema import Criterion

TOKENS_AROUND, TOKENS_A_QUESTION = 1024, 256
"""Room for an answer: what a model writes about one criterion, and what it may think before."""


@dataclass(frozen=True, slots=True, repr=False)
class Inquiry:
    """The criteria of one dimension, as they are put to the model."""

    criteria: tuple[Criterion, ...]
    system: str
    seen: Transcript
    """What the model is shown of the transcript; its quotes are of it."""
    text: str
    """The same as one line of JSON."""
    temperature: float
    key: str

    def __repr__(self) -> str:
        return f"<Inquiry: {len(self.criteria)} criteria>"

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids the model is asked to answer under."""
        return tuple(f"c{number}" for number in range(1, len(self.criteria) + 1))

    def question(
        self, secret: bytes, seed: int, mistake: FailureKind | None, *, logprobs: bool, together: int = 1
    ) -> Question:
        """The question, or, after a mistake, the question asked again; one of so many that a decision takes."""
        room = TOKENS_AROUND + TOKENS_A_QUESTION * len(self.criteria)
        return Question(
            system=self.system,
            user=user_text({"": self.text}, secret, mistake),
            schema=JudgeAnswer,
            max_tokens=2 * room if mistake is FailureKind.TRUNCATED else room,
            temperature=self.temperature,
            seed=seed,
            logprobs=logprobs,
            together=together,
        )


def name_of(criterion: Criterion) -> tuple[str, str]:
    """The name of a question within a rubric: a criterion may have one of its own and others to fall back on."""
    return criterion.id, "" if criterion.check.judge is None else criterion.check.judge.question


def inquiries(
    case: Case, criteria: Sequence[Criterion], version: str, temperature: float, reader: Reader | None = None
) -> list[Inquiry]:
    """The inquiries that decide `criteria`; `BodyTooLarge` if the transcript is too long to be sent."""
    transcript_json(case.transcript)  # refused before it is read, which takes longer
    seen = as_shown(case.transcript, case.scenario.case, reader)
    text = transcript_json(seen)
    groups = [
        group
        for dimension in dict.fromkeys(criterion.dimension for criterion in criteria)
        for group in _groups(case, dimension, [c for c in criteria if c.dimension == dimension])
    ]
    return [_inquiry(case, group, seen, text, version=version, temperature=temperature) for group in groups]


def _groups(case: Case, dimension: str, wanted: Sequence[Criterion]) -> list[tuple[Criterion, ...]]:
    """The questions asked together: those that stand first in their criteria, those to fall back on, any others."""
    own = [c for c in case.scenario.secrets.rubric.criteria if c.dimension == dimension]
    first = tuple(at_step(c, 0) for c in own if c.check.judge)
    later = tuple(at_step(c, n) for c in own for n in range(1, 1 + len(c.fallback)) if check_at(c, n).judge)
    names = {name_of(criterion) for criterion in (*first, *later)}
    others = tuple(c for c in wanted if name_of(c) not in names)
    asked = {name_of(criterion) for criterion in wanted}
    return [group for group in (first, later, others) if not asked.isdisjoint(map(name_of, group))]


def _inquiry(
    case: Case, group: tuple[Criterion, ...], seen: Transcript, text: str, *, version: str, temperature: float
) -> Inquiry:
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
        "transcript": text,
    }
    return Inquiry(group, system, seen, text, temperature, key_of(parts))
