"""Compares two conversations, asked in both orders: a win counts only if both orders agree.

Models prefer a position (LLMBar, Zeng et al. 2024: consistency of some is below 50 %), so one order alone measures
where a conversation stood. The pair is asked in an order of its own, by the transcripts' digests: swapping the
arguments swaps the result and nothing else. It breaks ties of `/compare`; it never makes a number.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import structlog

from personas.reading.reader import Reader
from reward_server.judges.asking import ORDERS, ask_and_read, no_answer, together
from reward_server.judges.preflight import offence_in
from reward_server.judges.prompt import PAIR_RULES, PROMPT_VERSION, system_text, transcript_json, user_text
from reward_server.judges.reading import PairAnswer, read_pair
from reward_server.judges.rendering import as_shown
from reward_server.judges.verdict_cache import VerdictCache, key_of
from reward_server.llm.base import Answer, FailureKind, LanguageModel, LlmFailed, Question
from reward_server.transcripts.transcript import Transcript
from scenarios.library import SealedScenario
from scenarios.schema import Criterion

MAX_TOKENS = 2048

Winner = Literal["a", "b", "tie"]
Label = Literal["X", "Y", "neither"]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PairwisePreference:
    """The preference that both orders together express."""

    winner: Winner
    consistent: bool
    """Whether the two orders said the same."""


@dataclass(frozen=True, slots=True, repr=False)
class _Reading:
    """A transcript as the model is shown it, and the line of JSON that it reads."""

    transcript: Transcript
    text: str


class PairwiseJudge:
    """Compares two transcripts of one scenario."""

    def __init__(self, model: LanguageModel, cache: VerdictCache, reader: Reader | None = None) -> None:
        self._model = model
        self._cache = cache
        self._secret = secrets.token_bytes(32)
        self._reader = reader

    async def compare(
        self, scenario: SealedScenario, criteria: Sequence[Criterion], a: Transcript, b: Transcript, lab_id: str
    ) -> PairwisePreference:
        """Compare two transcripts by these criteria.

        Raises:
            JudgeFailed: one of the two orders got no usable answer.
            BudgetExhausted: the lab may not spend more today.
            BodyTooLarge: one of the two is too long to be read.
        """
        if await asyncio.to_thread(_offends, a, b):
            return PairwisePreference("tie", consistent=True)  # nothing that speaks to a judge is shown to one
        try:
            return await self._compare(scenario, criteria, a, b, lab_id)
        except LlmFailed as failure:
            kind = failure.kind.value
            log.warning("judge_failed", scenario=scenario.name, provider=self._model.name, kind=kind)
            raise no_answer(failure) from None

    async def _compare(
        self, scenario: SealedScenario, criteria: Sequence[Criterion], a: Transcript, b: Transcript, lab_id: str
    ) -> PairwisePreference:
        one, other = await asyncio.to_thread(lambda: [_shown(side, scenario, self._reader) for side in (a, b)])
        if one.text == other.text:
            return PairwisePreference("tie", consistent=True)
        system = _system(scenario, criteria)
        first, second = sorted((one, other), key=_digest)
        key = key_of(
            {
                "what": "preference",
                "judge": [self._model.version, PROMPT_VERSION],
                "scenario": [scenario.name, scenario.version],
                "system": system,
                "transcripts": [first.text, second.text],
            }
        )
        orders = ((first, second), (second, first))

        async def decide() -> list[Label]:
            return await together([self._ask(system, shown, lab_id, n) for n, shown in enumerate(orders)])

        labels = await self._cache.decision(key, lab_id, _usable, decide)
        winners = [{"X": x, "Y": y}.get(label) for label, (x, y) in zip(labels, orders, strict=True)]
        if winners[0] is not winners[1]:
            return PairwisePreference("tie", consistent=False)
        return PairwisePreference("tie" if winners[0] is None else "a" if winners[0] is one else "b", consistent=True)

    async def _ask(self, system: str, shown: tuple[_Reading, _Reading], lab_id: str, number: int) -> Label:
        """The label of the better one in this order."""

        def put(mistake: FailureKind | None) -> tuple[Question, Callable[[Answer], Label]]:
            question = Question(
                system=system,
                user=user_text({"X": shown[0].text, "Y": shown[1].text}, self._secret, mistake),
                schema=PairAnswer,
                max_tokens=2 * MAX_TOKENS if mistake is FailureKind.TRUNCATED else MAX_TOKENS,
                temperature=0.0,
                seed=number,
                together=ORDERS,
            )
            return question, read

        def read(answer: Answer) -> Label:
            if not isinstance(answer.parsed, PairAnswer):
                raise LlmFailed(FailureKind.MALFORMED)
            return read_pair(answer.parsed, (shown[0].transcript, shown[1].transcript))

        return await ask_and_read(self._model, put, lab_id=lab_id, sample=number)


def _shown(transcript: Transcript, scenario: SealedScenario, reader: Reader | None) -> _Reading:
    transcript_json(transcript)  # refused before it is read, which takes longer
    shown = as_shown(transcript, scenario.case, reader)
    return _Reading(shown, transcript_json(shown))


def _offends(*transcripts: Transcript) -> bool:
    return any(offence_in(transcript) is not None for transcript in transcripts)


def _digest(reading: _Reading) -> str:
    return hashlib.sha256(reading.text.encode()).hexdigest()


def _system(scenario: SealedScenario, criteria: Sequence[Criterion]) -> str:
    """The rules and what matters in this scenario, good and bad; weights are left to the rubric's arithmetic."""
    items = [
        {"counts": "for" if criterion.points > 0 else "against", "what": criterion.about} for criterion in criteria
    ]
    return system_text(PAIR_RULES, scenario.card, "What matters:", items)


def _usable(labels: Any) -> bool:
    """True if something that was kept is the answers of two orders."""
    return isinstance(labels, list) and len(labels) == 2 and all(label in ("X", "Y", "neither") for label in labels)
