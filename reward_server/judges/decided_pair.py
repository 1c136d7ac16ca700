"""Compares two conversations in both orders with a decision model: a win counts only if both agree.

As `pairwise` asks a language model: the pair has an order of its own, by digest, so swapping the arguments swaps the
result and nothing else.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Any

import structlog

from personas.reading.reader import Reader
from reward_server.decisions.questions import ChoiceQuestion, Decider
from reward_server.judges.asking import no_answer, together
from reward_server.judges.decided import NOTE
from reward_server.judges.pairwise import PairwisePreference
from reward_server.judges.preflight import offence_in
from reward_server.judges.prompt import transcript_json, turns_of
from reward_server.judges.rendering import as_shown
from reward_server.llm.base import LlmFailed
from reward_server.transcripts.transcript import Transcript
from scenarios.library import SealedScenario
from scenarios.schema import Criterion

log = structlog.get_logger(__name__)

BETTER = ChoiceQuestion(
    "In which conversation did the agent serve its task better, by what matters? Length, politeness formulas and the "
    "order of the two count for nothing.",
    (("X", "clearly in X"), ("Y", "clearly in Y"), ("neither", "no clear difference")),
)


class DecidedPairs:
    """Compares two transcripts of one scenario; what `PairwiseJudge` is on a language model."""

    def __init__(self, decider: Decider, reader: Reader | None = None) -> None:
        self._decider = decider
        self._reader = reader

    async def compare(
        self, scenario: SealedScenario, criteria: Sequence[Criterion], a: Transcript, b: Transcript, lab_id: str
    ) -> PairwisePreference:
        """Compare two transcripts by these criteria; raises as `PairwiseJudge.compare`."""
        if await asyncio.to_thread(lambda: offence_in(a) is not None or offence_in(b) is not None):
            return PairwisePreference("tie", consistent=True)
        one, other = await asyncio.to_thread(lambda: [self._turns(side, scenario) for side in (a, b)])
        if one == other:
            return PairwisePreference("tie", consistent=True)
        first, second = sorted((one, other), key=lambda side: hashlib.sha256(str(side).encode()).digest())
        orders = ((first, second), (second, first))
        try:
            labels = await together([self._better(scenario, criteria, *order, lab_id) for order in orders])
        except LlmFailed as failure:
            log.warning("judge_failed", scenario=scenario.name, provider=self._decider.name, kind=failure.kind.value)
            raise no_answer(failure) from None
        winners = [{"X": x, "Y": y}.get(label) for label, (x, y) in zip(labels, orders, strict=True)]
        if winners[0] is not winners[1]:
            return PairwisePreference("tie", consistent=False)
        return PairwisePreference("tie" if winners[0] is None else "a" if winners[0] is one else "b", consistent=True)

    async def _better(self, scenario: SealedScenario, criteria: Sequence[Criterion], x: Any, y: Any, lab: str) -> str:
        matters = [
            {"counts": "for" if criterion.points > 0 else "against", "what": criterion.about} for criterion in criteria
        ]
        situation = f"{scenario.card.name}. {scenario.card.description}"
        state = {"note": NOTE, "situation": situation, "what_matters": matters, "X": x, "Y": y}
        return (await self._decider.decide(state, {"better": BETTER}, lab_id=lab))["better"].best

    def _turns(self, transcript: Transcript, scenario: SealedScenario) -> list[dict[str, Any]]:
        transcript_json(transcript)  # refused before it is read, which takes longer
        return turns_of(as_shown(transcript, scenario.case, self._reader))
