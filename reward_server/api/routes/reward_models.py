"""GET /reward-models, POST /reward-models/{id}/activate: which learned models there are, and which one serves."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from reward_server.api import examples
from reward_server.api.context import API_PREFIX, Body, Caller, answer, services_of
from reward_server.api.cursor import Position
from reward_server.api.operation import Operation, operation
from reward_server.api.paging import PageQuery, Pager
from reward_server.coordination.scopes import ANY, Scope
from reward_server.reward_models.artefact import Card
from trainer_client.wire import RewardModelList, RewardModelResponse

router = APIRouter(prefix=API_PREFIX, tags=["learned models"])


@router.get("/reward-models")
@operation(Operation(RewardModelList, scopes=ANY, errors=(400,), response_example=examples.REWARD_MODELS))
async def list_reward_models(request: Request, lab: Caller, query: Annotated[PageQuery, Query()]) -> Response:
    """The learned reward models of this server, newest first, with their figures on held-out dialogues."""
    services = services_of(request)
    found = await services.reward_models.all()
    pager = Pager(services.cursors, lab.lab_id, "rm")
    shown, following = pager.page(found, query, lambda each: Position(each[0].created, each[0].id))
    data = [_summary(card, active=active) for card, active in shown]
    return answer(request, {"data": data, "reward_models": data, **following})


@router.post("/reward-models/{reward_model_id}/activate")
@operation(
    Operation(RewardModelResponse, scopes=(Scope.OPERATE,), errors=(404, 409), response_example=examples.REWARD_MODEL)
)
async def activate_reward_model(
    request: Request, lab: Caller, reward_model_id: str, force: Annotated[bool, Query()] = False
) -> Response:
    """Let a model serve as `reward_model` from now on; for operators' keys. It changes the scoring version.

    One worse than a simple baseline on its held-out rows, or that judges style, is a 409 unless `force` is true.
    """
    card = await services_of(request).reward_models.activate(reward_model_id, force=force)
    return answer(request, _summary(card, active=True))


def _summary(card: Card, *, active: bool) -> Body:
    figures = {
        name: {each: value for each, value in found.items() if each != "variance"}
        for name, found in card.metrics.items()
    }
    return {
        "id": card.id,
        "active": active,
        "created_at": card.created.isoformat().replace("+00:00", "Z"),
        "data_hash": card.data.sha256,
        "labelled": card.data.labelled,
        "pairs": card.data.pairs,
        "heads": list(card.heads),
        "encoder_version": card.encoder_version,
        "held_out": figures,
    }
