"""Ranks the members of a group: one score each that compares inside the group, and places from 1.

Local judges give every member its own reward. With a group judge the members are compared side by side; what
it says is capped by the gates and failure criteria of each member's own scoring, and members that talk to the
scorer, or in which nothing happens, are not shown to it: they keep their reward, and never score above those that
were. Equal transcripts are one member. Nothing here is remembered, and no member without a number gets one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from reward_server.errors import BodyTooLarge, JudgeFailed
from reward_server.judges.preflight import offence_in
from reward_server.judges.ruler import GroupJudge, digest_of
from reward_server.llm.base import FailureKind
from reward_server.scoring.aggregate import considered
from reward_server.scoring.request import ScoreRequest
from reward_server.scoring.scored import Scored, Unscored, or_raise
from reward_server.scoring.variant import heard_in
from reward_server.telemetry.metrics import Metrics
from scenarios.library import Vault

TOO_LARGE = "The group is too large to be compared in one piece; send fewer or shorter responses."

LOCAL, LLM = "local", "llm"
"""By whom members are compared: each by its own reward, the rubric's unless judges are named; or all together."""


class MemberScorer(Protocol):
    """Scores each member alone."""

    async def score(self, requests: Sequence[ScoreRequest]) -> list[Scored | Unscored]:
        """One outcome per request, in order."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Scores and places, in the order of the members."""

    scores: tuple[float, ...]
    ranks: tuple[int, ...]
    judge: str
    """`llm`, `local`, or of a composite the judges that made each member's own reward."""
    scoring_version: str
    """Of the members' own rewards, which the scores are or are capped by."""


class Ranker:
    """Ranks groups; holds nothing between them."""

    def __init__(
        self, scorer: MemberScorer, vault: Vault, metrics: Metrics, group_judge: GroupJudge | None = None
    ) -> None:
        self._scorer = scorer
        self._vault = vault
        self._metrics = metrics
        self._group_judge = group_judge

    async def rank(self, members: Sequence[ScoreRequest]) -> Ranking:
        """The ranking of members of one scenario, config and lab.

        Raises:
            JudgeFailed: a member could not be scored, or the group not be compared; there are no partial numbers.
            BodyTooLarge: the group does not fit into one question.
            BudgetExhausted: the lab has spent what it may on language models.
        """
        digests = await asyncio.to_thread(lambda: [digest_of(member.transcript) for member in members])
        distinct = dict(zip(digests, members, strict=True))
        outcomes = await self._scorer.score(list(distinct.values()))
        rewards = {digest: or_raise(outcome) for digest, outcome in zip(distinct, outcomes, strict=True)}
        version = next(iter(rewards.values())).scoring_version
        scores = {digest: scored.reward for digest, scored in rewards.items()}
        shown = {} if self._group_judge is None else await asyncio.to_thread(_without_offence, distinct)
        # One conversation alone compares with nothing: its own reward is all that can be said.
        if self._group_judge is None or len(shown) < 2:
            judges = next(iter(rewards.values())).judges
            return _placed([scores[digest] for digest in digests], "+".join(judges) or LOCAL, version)
        relative = await self._compare(self._group_judge, shown)
        capped = {digest: _capped(value, rewards[digest]) for digest, value in relative.items()}
        lowest = min(capped.values())
        scores = {digest: capped.get(digest, min(reward, lowest)) for digest, reward in scores.items()}
        return _placed([scores[digest] for digest in digests], LLM, version)

    async def _compare(self, judge: GroupJudge, shown: Mapping[str, ScoreRequest]) -> Mapping[str, float]:
        first = next(iter(shown.values()))
        scenario = heard_in(self._vault, first.collection, first.scenario, first.transcript)
        criteria = considered(scenario.secrets.rubric, first.config)
        group = {digest: member.transcript for digest, member in shown.items()}
        try:
            return await judge.relative(scenario, criteria, group, first.lab_id)
        except JudgeFailed as failure:
            self._metrics.judge_failures.labels(failure.kind).inc()
            if failure.kind == FailureKind.TOO_LARGE:
                raise BodyTooLarge(TOO_LARGE) from None
            raise


def _without_offence(members: Mapping[str, ScoreRequest]) -> dict[str, ScoreRequest]:
    """Those that may be shown to a judge."""
    return {digest: member for digest, member in members.items() if offence_in(member.transcript) is None}


def _capped(value: float, scored: Scored) -> float:
    return min(value, *scored.caps, *(gate.cap for gate in scored.gates), 1.0)


def _placed(scores: Sequence[float], judge: str, scoring_version: str) -> Ranking:
    rounded = tuple(round(score, 4) for score in scores)
    return Ranking(rounded, places(rounded), judge, scoring_version)


def places(scores: Sequence[float]) -> tuple[int, ...]:
    """Competition ranking: equal scores share a place, and the next place is as far down as there are better ones."""
    ordered = sorted(scores, reverse=True)
    first = {score: place for place, score in reversed(list(enumerate(ordered, 1)))}
    return tuple(first[score] for score in scores)
