"""GET /calibrations: what `reward_config.calibration` may name."""

from __future__ import annotations

import asyncio
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
from reward_server.reward_models.summary import calibration_summary
from reward_server.store.records import PageEnd
from trainer_client.wire import CalibrationList, CalibrationResponse

router = Router(prefix=API_PREFIX, tags=["learned models"])
_LEARNS = (Scope.SCORE, Scope.OPERATE)


@router.get("/calibrations", response_model=CalibrationList, responses=answers(examples.CALIBRATIONS, 400))
async def list_calibrations(
    request: Request, lab: Annotated[Lab, for_keys(*ANY)], query: Annotated[PageQuery, Query()]
) -> Body:
    """The calibrations of this server, newest first, also those of other scoring versions."""
    services = services_of(request)
    found = await asyncio.to_thread(services.calibrations.all)
    pager = Pager(services.cursors, lab.lab_id, "cal")
    shown, following = pager.page(found, query, lambda each: PageEnd(each.created, each.id))
    data = [calibration_summary(each) for each in shown]
    return answer(request, {"data": data, "calibrations": data, **following})


@router.delete(
    "/calibrations/{calibration_id}", response_model=CalibrationResponse, responses=answers(examples.CALIBRATION, 404)
)
async def delete_calibration(request: Request, lab: Annotated[Lab, for_keys(*_LEARNS)], calibration_id: str) -> Body:
    """Delete a calibration of the lab's own, for good."""
    deleted = await asyncio.to_thread(services_of(request).calibrations.delete, calibration_id)
    return answer(request, calibration_summary(deleted))
