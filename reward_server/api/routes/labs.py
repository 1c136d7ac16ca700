"""/labs: an operator's view of labs, their limits and their data; GET /usage: what a lab used, for the lab itself."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import Query, Request
from pydantic import Field

from reward_server.api import examples
from reward_server.api.access import for_keys
from reward_server.api.answers import answers
from reward_server.api.body import JsonBody
from reward_server.api.context import API_PREFIX, Body, actor_of, answer, services_of
from reward_server.api.query import QueryModel
from reward_server.api.router import Router
from reward_server.auth.lab import Lab
from reward_server.auth.scopes import ANY, Scope
from reward_server.clock import to_iso
from reward_server.store.records import LabLimitsRow, LabRow
from trainer_client.wire import (
    ChangeLabRequest,
    CreateLabRequest,
    DeletedData,
    LabLimits,
    LabList,
    LabResponse,
    UsageResponse,
)

router = Router(prefix=API_PREFIX, tags=["operators"])
_OPERATE = (Scope.OPERATE,)
_NANO = 1_000_000_000
_MEGA = 1_000_000


@router.get("/labs", response_model=LabList, responses=answers(examples.LABS))
async def list_labs(request: Request, lab: Annotated[Lab, for_keys(*_OPERATE)]) -> Body:
    """All labs of this server, by their ids."""
    return answer(request, {"data": [_summary(row) for row in await services_of(request).tenants.list()]})


@router.post("/labs", response_model=LabResponse, responses=answers(examples.LAB, 409))
async def create_lab(
    request: Request,
    lab: Annotated[Lab, for_keys(*_OPERATE)],
    wanted: Annotated[CreateLabRequest, JsonBody(example=examples.CREATE_LAB)],
) -> Body:
    """Make a lab; making a key for a new lab does so, too."""
    row = await services_of(request).tenants.create(
        wanted.lab_id, wanted.name, limits_of(wanted.limits), actor_of(request, lab)
    )
    return answer(request, _summary(row))


@router.get("/labs/{lab_id}", response_model=LabResponse, responses=answers(examples.LAB, 404))
async def read_lab(request: Request, lab: Annotated[Lab, for_keys(*_OPERATE)], lab_id: str) -> Body:
    """One lab."""
    return answer(request, _summary(await services_of(request).tenants.get(lab_id)))


@router.patch("/labs/{lab_id}", response_model=LabResponse, responses=answers(examples.LAB, 404, 409))
async def change_lab(
    request: Request,
    lab: Annotated[Lab, for_keys(*_OPERATE)],
    lab_id: str,
    wanted: Annotated[ChangeLabRequest, JsonBody(example={"limits": examples.LAB["limits"]})],
) -> Body:
    """Change a lab's name or its limits, which are replaced as a whole."""
    limits = None if wanted.limits is None else limits_of(wanted.limits)
    row = await services_of(request).tenants.change(lab_id, name=wanted.name, limits=limits, by=actor_of(request, lab))
    return answer(request, _summary(row))


@router.delete("/labs/{lab_id}/data", response_model=DeletedData, responses=answers(examples.DELETED_DATA, 404))
async def delete_lab_data(request: Request, lab: Annotated[Lab, for_keys(*_OPERATE)], lab_id: str) -> Body:
    """Permanently delete a lab's conversations, reward models and calibrations.

    Its keys, its usage and the audit log stay.
    """
    deleted = await services_of(request).tenants.delete_data(lab_id, actor_of(request, lab))
    return answer(request, {"lab_id": lab_id, "deleted": deleted})


class UsageQuery(QueryModel):
    """Query of GET /usage."""

    days: int = Field(default=30, ge=1, le=366, description="Number of days (UTC), including today.")


@router.get("/usage", response_model=UsageResponse, responses=answers(examples.USAGE, 400))
async def read_usage(
    request: Request, lab: Annotated[Lab, for_keys(*ANY)], query: Annotated[UsageQuery, Query()]
) -> Body:
    """Return the usage of this key's lab, day by day, and its limits."""
    services = services_of(request)
    await services.usage.flush()
    now = services.clock.now()
    since = now.date() - timedelta(days=query.days - 1)
    async with services.store.reading() as work:
        used = {row.day: row for row in await work.usage.of(lab.lab_id, since)}
        spent = {row.day: row for row in await work.spending.since(since, now) if row.lab_id == lab.lab_id}
    data: list[Body] = []
    for day in sorted({*used, *spent}, reverse=True):
        row, money = used.get(day), spent.get(day)
        data.append(
            {
                "day": day.isoformat(),
                "requests": row.requests if row else 0,
                "turns": row.turns if row else 0,
                "evaluations": row.evaluations if row else 0,
                "characters": row.characters if row else 0,
                "llm_calls": money.calls if money else 0,
                "llm_tokens": money.spent.tokens if money else 0,
                "llm_usd": money.spent.nano_usd / _NANO if money else 0.0,
            }
        )
    return answer(request, {"lab_id": lab.lab_id, "limits": _limits(lab.limits), "data": data})


def limits_of(wanted: LabLimits) -> LabLimitsRow:
    """In the units of the store."""
    return LabLimitsRow(
        characters_per_day=wanted.characters_per_day,
        tokens_per_day=wanted.tokens_per_day,
        nano_usd_per_day=None if wanted.usd_per_day is None else round(wanted.usd_per_day * _NANO),
        concurrency=wanted.concurrency,
        storage_bytes=None if wanted.storage_mb is None else round(wanted.storage_mb * _MEGA),
        retention_days=wanted.retention_days,
    )


def _limits(limits: LabLimitsRow) -> Body:
    shown = {
        "characters_per_day": limits.characters_per_day,
        "tokens_per_day": limits.tokens_per_day,
        "usd_per_day": None if limits.nano_usd_per_day is None else limits.nano_usd_per_day / _NANO,
        "concurrency": limits.concurrency,
        "storage_mb": None if limits.storage_bytes is None else limits.storage_bytes / _MEGA,
        "retention_days": limits.retention_days,
    }
    return {name: value for name, value in shown.items() if value is not None}


def _summary(row: LabRow) -> Body:
    return {
        "lab_id": row.lab_id,
        "name": row.name,
        "limits": _limits(row.limits),
        "created_at": to_iso(row.created_at),
    }
