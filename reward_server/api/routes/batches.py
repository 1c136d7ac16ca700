"""POST /batch/episodes and /batch/turns: many episodes in one request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import Request, Response

from reward_server.api import examples
from reward_server.api.body import CONVERSATIONS, parse, read_json, validate
from reward_server.api.context import (
    API_PREFIX,
    Caller,
    answer,
    body_as,
    body_by,
    idempotency_key,
    services_of,
    within,
)
from reward_server.api.operation import Operation, operation
from reward_server.api.router import Router
from reward_server.auth.scopes import Scope
from reward_server.episodes.batches import InvalidTurn, TurnEntry
from reward_server.errors import InvalidRequest
from reward_server.transcripts.weight import weight
from trainer_client.wire import (
    MAX_BATCH_ITEMS,
    BatchEpisodesRequest,
    BatchEpisodesResponse,
    BatchTurnsRequest,
    BatchTurnsResponse,
    TurnItem,
)

router = Router(prefix=API_PREFIX, tags=["episodes"])


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
    entries = await body_by(_turns_of, request, CONVERSATIONS)
    good = [each for each in entries if isinstance(each, TurnItem)]
    await services.compute.charge(lab, sum(weight(item.messages[-1]) for item in good), turns=len(good))
    work = services.episodes.play_many(lab, entries, idempotency_key(request))
    return answer(request, await within(services.settings.batch_deadline_s, work))


def _turns_of(body: bytes) -> Sequence[TurnEntry]:
    """The items; one by one only if something is wrong with the body, because reading it in one go is faster."""
    try:
        return parse(BatchTurnsRequest, body).items
    except InvalidRequest as refused:
        return _one_by_one(read_json(body), refused)


def _one_by_one(content: object, refused: InvalidRequest) -> list[TurnEntry]:
    """A bad item that names its episode is an entry that says so; anything else refuses the batch."""
    items = content["items"] if isinstance(content, dict) and content.keys() == {"items"} else None
    if not isinstance(items, list) or not 1 <= len(items) <= MAX_BATCH_ITEMS or not all(map(_names_one, items)):
        raise refused
    return [_entry(item) for item in items]


def _names_one(item: object) -> bool:
    return isinstance(item, dict) and isinstance(item.get("episode_id"), str)


def _entry(item: dict[str, Any]) -> TurnEntry:
    try:
        return validate(TurnItem, item)
    except InvalidRequest as error:
        return InvalidTurn(item["episode_id"], item, error)
