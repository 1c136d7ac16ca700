"""GET /reward-models, POST /reward-models/{id}/activate: which learned models there are, and which one serves."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request

from reward_server.api import examples
from reward_server.api.access import for_keys
from reward_server.api.answers import answers
from reward_server.api.context import API_PREFIX, Body, answer, services_of
from reward_server.api.paging import PageQuery, Pager
from reward_server.api.router import Router
from reward_server.auth.lab import Lab
from reward_server.auth.scopes import ANY, Scope
from reward_server.reward_models.artefact import Card
from reward_server.reward_models.summary import model_summary
from reward_server.store.records import PageEnd
from trainer_client.wire import RewardModelList, RewardModelResponse

router = Router(prefix=API_PREFIX, tags=["learned models"])


@router.get("/reward-models", response_model=RewardModelList, responses=answers(examples.REWARD_MODELS, 400))
async def list_reward_models(
    request: Request, lab: Annotated[Lab, for_keys(*ANY)], query: Annotated[PageQuery, Query()]
) -> Body:
    """The learned reward models of this server, newest first, with their figures on held-out dialogues."""
    services = services_of(request)
    found = await services.reward_models.all()
    pager = Pager(services.cursors, lab.lab_id, "rm")
    shown, following = pager.page(found, query, lambda each: PageEnd(each[0].created, each[0].id))
    data = [_summary(card, active=active) for card, active in shown]
    return answer(request, {"data": data, "reward_models": data, **following})


_LEARNS = (Scope.SCORE, Scope.OPERATE)
"""Who may train models of a lab may let them serve it; those that all labs share are the operator's."""


@router.post(
    "/reward-models/{reward_model_id}/activate",
    response_model=RewardModelResponse,
    responses=answers(examples.REWARD_MODEL, 400, 404, 409),
)
async def activate_reward_model(
    request: Request,
    lab: Annotated[Lab, for_keys(*_LEARNS)],
    reward_model_id: str,
    force: Annotated[bool, Query()] = False,
) -> Body:
    """Let a model serve as `reward_model` from now on; one that all labs share takes an operator's key. It changes
    the scoring version.

    One worse than a simple baseline on its held-out rows, or that judges style, is a 409 unless `force` is true.
    """
    models = services_of(request).reward_models
    card = await models.activate(reward_model_id, force=force, shared=Scope.OPERATE in lab.scopes)
    return answer(request, _summary(card, active=True))


@router.post(
    "/reward-models/{reward_model_id}/deactivate",
    response_model=RewardModelResponse,
    responses=answers(examples.REWARD_MODEL, 404),
)
async def deactivate_reward_model(
    request: Request, lab: Annotated[Lab, for_keys(*_LEARNS)], reward_model_id: str
) -> Body:
    """Let a model of the lab's own serve no longer: what serves all labs, if anything does, serves it again."""
    return answer(request, _summary(await services_of(request).reward_models.deactivate(reward_model_id), active=False))


@router.delete(
    "/reward-models/{reward_model_id}",
    response_model=RewardModelResponse,
    responses=answers(examples.REWARD_MODEL, 404, 409),
)
async def delete_reward_model(request: Request, lab: Annotated[Lab, for_keys(*_LEARNS)], reward_model_id: str) -> Body:
    """Delete a model of the lab's own, for good; one that serves is a 409."""
    return answer(request, _summary(await services_of(request).reward_models.delete(reward_model_id), active=False))


def _summary(card: Card, *, active: bool) -> Body:
    return {**model_summary(card), "active": active}
