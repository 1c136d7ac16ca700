"""Ranks a group of conversations of one scenario and answers; keeps nothing but the answer to a retry.

A score means something inside its group alone, so no evaluation is stored and nothing is looked up. A group is
ranked whole or not at all: whatever fails for one member fails the request.
"""

from __future__ import annotations

import time
from functools import partial

from reward_server.auth.idempotency import Body, Idempotency, Keep
from reward_server.auth.lab import Lab
from reward_server.errors import FieldProblem, InvalidRequest
from reward_server.evaluations.places import Place, Places
from reward_server.scoring.config import read_config, without_calibration
from reward_server.scoring.given import GivenRubrics
from reward_server.scoring.rank import Ranker
from reward_server.scoring.request import ScoreRequest
from reward_server.scoring.scorer import Scorer
from reward_server.telemetry.metrics import Metrics
from scenarios.library import Catalog
from trainer_client.wire import RankRequest

SOURCE = "rank"


class RankingService:
    """Ranks groups for labs."""

    def __init__(
        self,
        *,
        catalog: Catalog,
        scorer: Scorer,
        ranker: Ranker,
        idempotency: Idempotency,
        metrics: Metrics,
        rubrics: GivenRubrics,
    ) -> None:
        self._places = Places(catalog, rubrics)
        self._scorer = scorer
        self._ranker = ranker
        self._idempotency = idempotency
        self._metrics = metrics

    async def rank(self, lab: Lab, request: RankRequest, key: str | None) -> Body:
        """Scores and places of a group."""
        place = self._places.of(lab, request)
        members = await self._members(lab, request, place)
        work = partial(self._rank, request, members, place.title)
        return await self._idempotency.answer(lab, key, lambda: ("rank", request.model_dump()), work, outlives=False)

    async def _rank(self, request: RankRequest, members: list[ScoreRequest], name: str, _keep: Keep) -> Body:
        started = time.perf_counter()
        ranking = await self._ranker.rank(members)
        self._metrics.evaluations.labels(SOURCE).inc(len(members))
        rows = zip(request.responses, ranking.scores, ranking.ranks, strict=True)
        elapsed_ms = round((time.perf_counter() - started) * 1000, 3)
        return {
            "results": [{"id": member.id, "score": score, "rank": place} for member, score, place in rows],
            "relative": True,
            "scoring_version": ranking.scoring_version,
            "metadata": {"scenario_name": name, "evaluation_time_ms": elapsed_ms, "judge": ranking.judge},
        }

    async def _members(self, lab: Lab, request: RankRequest, place: Place) -> list[ScoreRequest]:
        config = without_calibration(read_config(request.reward_config))
        self._scorer.check(config)
        members = []
        for index, member in enumerate(request.responses):
            try:
                transcript = await self._scorer.read_off_the_loop(*place.names, member.messages, request.agent_role)
            except InvalidRequest as error:
                raise _placed(error, index) from None
            members.append(ScoreRequest(*place.names, transcript, config, lab.lab_id, place.lent))
        return members


def _placed(error: InvalidRequest, index: int) -> InvalidRequest:
    """The same error, saying which member it is about."""
    problems = error.errors or (FieldProblem(("messages",), error.message),)
    placed = [FieldProblem(("responses", index, *problem.loc), problem.msg) for problem in problems]
    return type(error)(error.message, placed)
