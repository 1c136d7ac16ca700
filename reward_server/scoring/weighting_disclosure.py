"""Limits what a key without full scores is told of a reward whose families it weights itself.

Rewards of many weightings, and of a conversation's beginnings, differ by single criteria: their points, families and
triggers could be computed. So such a key is told a reward in steps of `STEP`, a dimension only where criteria of
`FAMILIES` families make it up, and only so many weightings of a scenario in a day. Without weights of its own it is
told what everybody is told; with full scores, everything.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from reward_server.auth.audit import AuditLog
from reward_server.auth.request_context import request_context
from reward_server.errors import TooManyWeightings
from reward_server.limits.weightings import Weightings
from reward_server.scoring.config import PLAIN, RewardConfig
from reward_server.scoring.request import ScoreRequest
from reward_server.scoring.scored import Scored, Unscored
from scenarios.library import Vault
from scenarios.schema import Rubric

STEP = 0.1
FAMILIES = 3
PROBED = "rubric.probed"
"""In the audit log: a key asked for more weightings of a scenario than it may."""


class WeightingDisclosure:
    """Blurs rewards of a caller's own weightings, and limits how many weightings there may be."""

    def __init__(self, vault: Vault, weightings: Weightings, audit: AuditLog | None = None) -> None:
        self._vault = vault
        self._weightings = weightings
        self._audit = audit
        self._noted: set[tuple[str, str, str]] = set()

    async def refused(self, requests: Sequence[ScoreRequest | None]) -> dict[int, Unscored]:
        """Those of the requests, by their place, that are one weighting too many."""
        refusals = {}
        for place, request in enumerate(requests):
            if request is not None and is_narrowed(request.config) and (wait_s := self._wait_s(request)):
                refusals[place] = Unscored(TooManyWeightings(retry_after_s=math.ceil(wait_s)))
                await self._note(request)
        return refusals

    def told(self, request: ScoreRequest | None, outcome: Scored | Unscored) -> Scored | Unscored:
        """The outcome as it may be told."""
        if request is None or isinstance(outcome, Unscored) or not is_narrowed(request.config):
            return outcome
        rubric = self._vault.open(request.collection, request.scenario).secrets.rubric
        mixed = _mixed(rubric, request.config)
        scores = {name: score for name, score in outcome.scores.items() if name in mixed}
        return replace(outcome, reward=in_steps(outcome.reward), scores=scores, uncertainty=None)

    def _wait_s(self, request: ScoreRequest) -> float:
        weighting = tuple(sorted(request.config.weights.items()))
        return self._weightings.wait_s(request.lab_id, request.collection, request.scenario, weighting)

    async def _note(self, request: ScoreRequest) -> None:
        """Once for each key and scenario: a probe asks often."""
        who = request_context()
        if who is None or self._audit is None:
            return
        name = who.actor.name, request.collection, request.scenario
        if name not in self._noted:
            self._noted.add(name)
            await self._audit.try_to_note(who.actor, PROBED, f"{request.collection}/{request.scenario}")


def is_narrowed(config: RewardConfig) -> bool:
    """True if the key that asks weights families itself and has no full scores."""
    who = request_context()
    return who is not None and not who.full_scores and config.weights != PLAIN.weights


def in_steps(reward: float) -> float:
    """The nearest step."""
    return round(math.floor(reward / STEP + 0.5) * STEP, 4)


def _mixed(rubric: Rubric, config: RewardConfig) -> set[str]:
    """The dimensions that criteria of enough families make up, under these weights."""
    families: dict[str, set[str]] = {}
    for criterion in rubric.criteria:
        if config.runs(criterion.family):
            families.setdefault(criterion.dimension, set()).add(criterion.family)
    return {name for name, criteria in families.items() if len(criteria) >= FAMILIES}
