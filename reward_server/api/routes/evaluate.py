"""POST /evaluate, /batch/evaluate and /compare: finished conversations in, rewards out. GET /evaluations/{id}."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Request

from reward_server.api import examples
from reward_server.api.access import for_keys
from reward_server.api.answers import answers
from reward_server.api.body import CONVERSATION, CONVERSATIONS, JsonBody, read_json, sent_as, validate
from reward_server.api.charged import evaluated
from reward_server.api.context import (
    API_PREFIX,
    Body,
    IdempotencyKey,
    answer,
    services_of,
    while_connected,
    within,
)
from reward_server.api.router import Router
from reward_server.auth.lab import Lab
from reward_server.auth.scopes import Scope
from reward_server.errors import FieldProblem, InvalidRequest, TooMuchText
from reward_server.evaluations.service import BatchEntry, InvalidEntry
from reward_server.transcripts.weight import weight_of, weight_of_all
from trainer_client.wire import (
    MAX_BATCH_ITEMS,
    BatchItem,
    BatchRequest,
    BatchResponse,
    CompareRequest,
    CompareResponse,
    EvaluateRequest,
    EvaluateResponse,
    StoredEvaluation,
)

router = Router(prefix=API_PREFIX, tags=["evaluation"])


@router.hot("/evaluate", response_model=EvaluateResponse, responses=answers(examples.EVALUATE_RESPONSE, 403, 404, 502))
async def evaluate(
    request: Request,
    lab: Annotated[Lab, for_keys(Scope.SCORE)],
    wanted: Annotated[EvaluateRequest, JsonBody(CONVERSATION, example=examples.EVALUATE_REQUEST)],
    key: IdempotencyKey = None,
) -> Body:
    """Score one conversation."""
    return answer(request, await evaluated(request, lab, wanted, key))


@router.get(
    "/evaluations/{evaluation_id}", response_model=StoredEvaluation, responses=answers(examples.STORED_EVALUATION, 404)
)
async def read_evaluation(
    request: Request,
    lab: Annotated[Lab, for_keys(Scope.SCORE, Scope.EXPORT)],
    evaluation_id: Annotated[str, Path(description="`ev_…`")],
) -> Body:
    """The stored answer of an evaluation of this lab, whichever door it came through."""
    return answer(request, await services_of(request).evaluations.get(lab, evaluation_id))


def _batch_of(body: bytes) -> tuple[object, list[BatchEntry]]:
    """The body as it came, for telling equal requests, and its items."""
    content = read_json(body)
    return content, read_batch(content)


def read_batch(content: object) -> list[BatchEntry]:
    """The items one by one: a bad one with an id is an entry that says so, anything else refuses the batch."""
    items = _items(content)
    ids: set[str] = set()
    entries: list[BatchEntry] = []
    for index, item in enumerate(items):
        item_id = _id_of(item, index)
        if item_id in ids:
            raise _refused(("items", index, "id"), "Is the id of an earlier item.")
        ids.add(item_id)
        try:
            entry = validate(BatchItem, item)
            weight_of(entry.messages)
            entries.append(entry)
        except (InvalidRequest, TooMuchText) as error:
            entries.append(InvalidEntry(item_id, error))
    return entries


def _items(content: object) -> list[Any]:
    if not isinstance(content, dict):
        raise _refused((), "The body must be an object.")
    for name in content:
        if name != "items":
            raise _refused((str(name)[:64],), "Is not a known field.")
    items = content.get("items")
    if not isinstance(items, list) or not 1 <= len(items) <= MAX_BATCH_ITEMS:
        raise _refused(("items",), f"Must be a list of 1 to {MAX_BATCH_ITEMS} items.")
    return items


def _id_of(item: object, index: int) -> str:
    if not isinstance(item, dict):
        raise _refused(("items", index), "Must be an object.")
    item_id = item.get("id")
    if not isinstance(item_id, str) or not 1 <= len(item_id) <= 256:
        raise _refused(("items", index, "id"), "Must be text of 1 to 256 characters.")
    return item_id


def _refused(loc: tuple[str | int, ...], message: str) -> InvalidRequest:
    return InvalidRequest(errors=[FieldProblem(loc, message)])


@router.hot("/batch/evaluate", response_model=BatchResponse, responses=answers(examples.BATCH_RESPONSE))
async def evaluate_batch(
    request: Request,
    lab: Annotated[Lab, for_keys(Scope.SCORE)],
    sent: Annotated[
        tuple[object, list[BatchEntry]],
        sent_as(BatchRequest),
        JsonBody(CONVERSATIONS, example=examples.BATCH_REQUEST, read=_batch_of),
    ],
    key: IdempotencyKey = None,
) -> Body:
    """Score 1 to 100 conversations; an item that cannot be scored is an error item without a reward."""
    services = services_of(request)
    content, entries = sent
    good = [each for each in entries if isinstance(each, BatchItem)]
    await services.compute.charge(lab, weight_of_all(each.messages for each in good), evaluations=len(good))
    work = services.evaluations.batch(lab, entries, content, key)
    return answer(request, await within(services.settings.batch_deadline_s, while_connected(request, work)))


@router.post("/compare", response_model=CompareResponse, responses=answers(examples.COMPARE_RESPONSE, 403, 404, 502))
async def compare(
    request: Request,
    lab: Annotated[Lab, for_keys(Scope.SCORE)],
    wanted: Annotated[CompareRequest, JsonBody(CONVERSATIONS, example=examples.COMPARE_REQUEST)],
    key: IdempotencyKey = None,
) -> Body:
    """Score two conversations of one scenario side by side."""
    services = services_of(request)
    await services.compute.charge(
        lab, weight_of_all((wanted.response_a.messages, wanted.response_b.messages)), evaluations=2
    )
    work = services.evaluations.compare(lab, wanted, key)
    return answer(request, await within(services.settings.request_deadline_s, while_connected(request, work)))
