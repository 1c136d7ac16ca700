"""Has a judge of pairs compare the two sides of each row, in both orders."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from reward_server.errors import JudgeFailed
from reward_server.fitting.agreement.read import LabelledEntry
from reward_server.fitting.agreement.scores import transcript_of
from reward_server.judges.pairwise import PairwisePreference
from reward_server.scoring.scorer import Scorer
from reward_server.scoring.variant import heard_in
from reward_server.transcripts.transcript import Transcript
from scenarios.library import SealedScenario, Vault
from scenarios.schema import Criterion

AT_ONCE = 16
_OTHER = {"a": "b", "b": "a", "tie": "a"}


class PairComparer(Protocol):
    """Compares two transcripts in both orders, as `judges.pairwise.PairwiseJudge` does."""

    async def compare(
        self, scenario: SealedScenario, criteria: Sequence[Criterion], a: Transcript, b: Transcript, lab_id: str
    ) -> PairwisePreference:
        """The winner, a tie where the orders disagree; `JudgeFailed` where there is none."""


async def compared(
    entries: Sequence[LabelledEntry],
    scorer: Scorer,
    vault: Vault,
    judge: PairComparer,
    *,
    name: str,
    on_done: Callable[[int], None],
) -> tuple[list[LabelledEntry], int]:
    """The same rows with what the judge says of each, and how many of them it failed on."""
    turnstile = asyncio.Semaphore(AT_ONCE)

    async def one(entry: LabelledEntry) -> LabelledEntry:
        first, second = entry.sides
        async with turnstile:
            try:
                sides = transcript_of(scorer, first), transcript_of(scorer, second)
                scenario = heard_in(vault, first.collection or "", first.scenario or "", sides[0])
                comparison = await judge.compare(scenario, scenario.secrets.rubric.criteria, *sides, "offline")
            except JudgeFailed:
                return entry
            finally:
                on_done(1)
        # Where the orders disagree, some other winner was named in the second one; which, nobody needs to know.
        swapped = comparison.winner if comparison.consistent else _OTHER[comparison.winner]
        return replace(
            entry, winners={**entry.winners, name: comparison.winner}, swapped={**entry.swapped, name: swapped}
        )

    heard = list(await asyncio.gather(*(one(entry) for entry in entries)))
    return heard, sum(name not in entry.winners for entry in heard)
