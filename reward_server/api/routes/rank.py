"""POST /rank: a group of finished conversations in, relative scores and places out."""

from __future__ import annotations

from fastapi import Request, Response

from reward_server.api import examples
from reward_server.api.body import CONVERSATIONS
from reward_server.api.context import (
    API_PREFIX,
    Caller,
    answer,
    body_as,
    idempotency_key,
    services_of,
    while_connected,
    within,
)
from reward_server.api.operation import Operation, operation
from reward_server.api.router import Router
from reward_server.auth.scopes import Scope
from reward_server.transcripts.weight import weight_of_all
from trainer_client.wire import RankRequest, RankResponse

router = Router(prefix=API_PREFIX, tags=["evaluation"])


@router.post("/rank")
@operation(
    Operation(
        RankResponse,
        RankRequest,
        scopes=(Scope.SCORE,),
        errors=(403, 404, 502),
        request_example=examples.RANK_REQUEST,
        response_example=examples.RANK_RESPONSE,
        retryable=True,
    )
)
async def rank(request: Request, lab: Caller) -> Response:
    """Rank 2 to 64 conversations of one scenario; the scores compare inside this group alone."""
    services = services_of(request)
    wanted = await body_as(RankRequest, request, CONVERSATIONS)
    await services.compute.charge(
        lab, weight_of_all(member.messages for member in wanted.responses), evaluations=len(wanted.responses)
    )
    work = services.rankings.rank(lab, wanted, idempotency_key(request))
    return answer(request, await within(services.settings.batch_deadline_s, while_connected(request, work)))
