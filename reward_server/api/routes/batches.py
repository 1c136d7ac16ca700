"""POST /batch/episodes and /batch/turns: many episodes in one request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Request

from reward_server.api import examples
from reward_server.api.access import for_keys
from reward_server.api.answers import answers
from reward_server.api.body import CONVERSATIONS, JsonBody, parse, read_json, sent_as, validate
from reward_server.api.context import API_PREFIX, Body, IdempotencyKey, answer, services_of, within
from reward_server.api.router import Router
from reward_server.auth.lab import Lab
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


@router.post(
    "/batch/episodes",
    response_model=BatchEpisodesResponse,
    responses=answers(examples.BATCH_EPISODES_RESPONSE, 403, 404, 502),
)
async def create_episodes(
    request: Request,
    lab: Annotated[Lab, for_keys(Scope.TRAIN)],
    wanted: Annotated[BatchEpisodesRequest, JsonBody(CONVERSATIONS, example=examples.BATCH_EPISODES_REQUEST)],
    key: IdempotencyKey = None,
) -> Body:
    """Begin up to 100 episodes: a group of one scenario, seed and persona, or items that differ; all or none."""
    services = services_of(request)
    work = services.episodes.create_many(lab, wanted, key)
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


@router.hot("/batch/turns", response_model=BatchTurnsResponse, responses=answers(examples.BATCH_TURNS_RESPONSE))
async def take_turns(
    request: Request,
    lab: Annotated[Lab, for_keys(Scope.TRAIN)],
    entries: Annotated[
        Sequence[TurnEntry],
        sent_as(BatchTurnsRequest),
        JsonBody(CONVERSATIONS, example=examples.BATCH_TURNS_REQUEST, read=_turns_of),
    ],
    key: IdempotencyKey = None,
) -> Body:
    """Play one turn of up to 100 episodes; an item that cannot be played is an error item without a reward."""
    services = services_of(request)
    good = [each for each in entries if isinstance(each, TurnItem)]
    await services.compute.charge(lab, sum(weight(item.messages[-1]) for item in good), turns=len(good))
    work = services.episodes.play_many(lab, entries, key)
    return answer(request, await within(services.settings.batch_deadline_s, work))
