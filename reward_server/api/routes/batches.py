"""POST /batch/episodes and /batch/turns: many episodes in one request."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from reward_server.api import examples
from reward_server.api.body import CONVERSATIONS
from reward_server.api.context import API_PREFIX, Caller, answer, body_as, idempotency_key, services_of, within
from reward_server.api.operation import Operation, operation
from reward_server.coordination.scopes import Scope
from reward_server.scoring.weight import weight
from trainer_client.wire import BatchEpisodesRequest, BatchEpisodesResponse, BatchTurnsRequest, BatchTurnsResponse

router = APIRouter(prefix=API_PREFIX, tags=["episodes"])


@router.post("/batch/episodes")
@operation(
    Operation(
        BatchEpisodesResponse,
        BatchEpisodesRequest,
        scopes=(Scope.TRAIN,),
        errors=(403, 404, 502),
        request_example=examples.BATCH_EPISODES_REQUEST,
        response_example=examples.BATCH_EPISODES_RESPONSE,
        retryable=True,
    )
)
async def create_episodes(request: Request, lab: Caller) -> Response:
    """Begin up to 100 episodes: a group of one scenario, seed and persona, or items that differ; all or none."""
    services = services_of(request)
    wanted = await body_as(BatchEpisodesRequest, request, CONVERSATIONS)
    work = services.episodes.create_many(lab, wanted, idempotency_key(request))
    return answer(request, await within(services.settings.batch_deadline_s, work))


@router.post("/batch/turns")
@operation(
    Operation(
        BatchTurnsResponse,
        BatchTurnsRequest,
        scopes=(Scope.TRAIN,),
        request_example=examples.BATCH_TURNS_REQUEST,
        response_example=examples.BATCH_TURNS_RESPONSE,
        retryable=True,
    )
)
async def take_turns(request: Request, lab: Caller) -> Response:
    """Play one turn of up to 100 episodes; an item that cannot be played is an error item without a reward."""
    services = services_of(request)
    wanted = await body_as(BatchTurnsRequest, request, CONVERSATIONS)
    await services.compute.charge(lab, sum(weight(item.messages[-1]) for item in wanted.items), turns=len(wanted.items))
    work = services.episodes.play_many(lab, wanted.items, idempotency_key(request))
    return answer(request, await within(services.settings.batch_deadline_s, work))
