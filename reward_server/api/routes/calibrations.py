"""GET /calibrations: what `reward_config.calibration` may name."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from reward_server.api import examples
from reward_server.api.context import API_PREFIX, Body, Caller, answer, services_of
from reward_server.api.cursor import Position
from reward_server.api.operation import Operation, operation
from reward_server.api.paging import PageQuery, Pager
from reward_server.coordination.scopes import ANY
from reward_server.reward_models.calibration import Calibration
from trainer_client.wire import CalibrationList

router = APIRouter(prefix=API_PREFIX, tags=["learned models"])


@router.get("/calibrations")
@operation(Operation(CalibrationList, scopes=ANY, errors=(400,), response_example=examples.CALIBRATIONS))
async def list_calibrations(request: Request, lab: Caller, query: Annotated[PageQuery, Query()]) -> Response:
    """The calibrations of this server, newest first, also those of other scoring versions."""
    services = services_of(request)
    found = await asyncio.to_thread(services.calibrations.all)
    pager = Pager(services.cursors, lab.lab_id, "cal")
    shown, following = pager.page(found, query, lambda each: Position(each.created, each.id))
    data = [_summary(each) for each in shown]
    return answer(request, {"data": data, "calibrations": data, **following})


def _summary(calibration: Calibration) -> Body:
    owner = "scoring_version" if calibration.belongs_to.startswith("sv_") else "reward_model_id"
    rewards = [each.model_dump(include={"name", "ece_before", "ece_after"}) for each in calibration.maps]
    together = calibration.combination
    return {
        "id": calibration.id,
        "method": calibration.method,
        "uses_labels": not calibration.is_scaling,
        "n": calibration.n,
        owner: calibration.belongs_to,
        "data_hash": calibration.data_hash,
        "range": calibration.range,
        "rewards": [{name: value for name, value in each.items() if value is not None} for each in rewards],
        **({} if together is None else {"combination": together.model_dump()}),
        "created_at": calibration.created.isoformat().replace("+00:00", "Z"),
    }
