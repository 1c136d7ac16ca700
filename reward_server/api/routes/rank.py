"""POST /rank: a group of finished conversations in, relative scores and places out."""

from __future__ import annotations

from typing import Annotated

from fastapi import Request

from reward_server.api import examples
from reward_server.api.access import for_keys
from reward_server.api.answers import answers
from reward_server.api.body import CONVERSATIONS, JsonBody
from reward_server.api.context import API_PREFIX, Body, IdempotencyKey, answer, services_of, while_connected, within
from reward_server.api.router import Router
from reward_server.auth.lab import Lab
from reward_server.auth.scopes import Scope
from reward_server.transcripts.weight import weight_of_all
from trainer_client.wire import RankRequest, RankResponse

router = Router(prefix=API_PREFIX, tags=["evaluation"])


@router.post("/rank", response_model=RankResponse, responses=answers(examples.RANK_RESPONSE, 403, 404, 502))
async def rank(
    request: Request,
    lab: Annotated[Lab, for_keys(Scope.SCORE)],
    wanted: Annotated[RankRequest, JsonBody(CONVERSATIONS, example=examples.RANK_REQUEST)],
    key: IdempotencyKey = None,
) -> Body:
    """Rank 2 to 64 conversations of one scenario; the scores compare inside this group alone."""
    services = services_of(request)
    await services.compute.charge(
        lab, weight_of_all(member.messages for member in wanted.responses), evaluations=len(wanted.responses)
    )
    work = services.rankings.rank(lab, wanted, key)
    return answer(request, await within(services.settings.batch_deadline_s, while_connected(request, work)))
