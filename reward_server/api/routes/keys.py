"""/keys and /audit: for operators."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import Query, Request

from reward_server.api import examples
from reward_server.api.access import for_keys
from reward_server.api.answers import answers
from reward_server.api.body import JsonBody
from reward_server.api.context import API_PREFIX, Body, Services, actor_of, answer, services_of
from reward_server.api.paging import PagedQuery, PageLimit, Pager
from reward_server.api.router import Router
from reward_server.auth.actor import Actor
from reward_server.auth.lab import Lab, Plan
from reward_server.auth.scopes import USUAL, Scope
from reward_server.clock import to_iso
from reward_server.errors import FieldProblem, InvalidRequest
from reward_server.ids import IdPrefix
from reward_server.store.records import KeyRow, PageEnd
from trainer_client.wire import AuditList, CreateKeyRequest, KeyList, KeyResponse, NewKeyResponse

router = Router(prefix=API_PREFIX, tags=["operators"])
_OPERATE = (Scope.OPERATE,)


@router.get("/keys", response_model=KeyList, responses=answers(examples.KEYS))
async def list_keys(request: Request, lab: Annotated[Lab, for_keys(*_OPERATE)]) -> Body:
    """All API keys, the newest first, without their secrets; revoked ones included."""
    rows = await services_of(request).keys.list()
    return answer(request, {"data": [_summary(row) for row in reversed(rows)]})


@router.post("/keys", response_model=NewKeyResponse, responses=answers(examples.NEW_KEY, 409))
async def create_key(
    request: Request,
    lab: Annotated[Lab, for_keys(*_OPERATE)],
    wanted: Annotated[CreateKeyRequest, JsonBody(example=examples.CREATE_KEY)],
) -> Body:
    """Make a key; `key` is in this answer and nowhere else."""
    services = services_of(request)
    return answer(request, await made_key(services, wanted, actor_of(request, lab)))


@router.delete("/keys/{key_id}", response_model=KeyResponse, responses=answers(examples.REVOKED_KEY, 404))
async def revoke_key(request: Request, lab: Annotated[Lab, for_keys(*_OPERATE)], key_id: str) -> Body:
    """End a key: at once here, within a second on every other server."""
    return answer(request, _summary(await services_of(request).keys.revoke(key_id, actor_of(request, lab))))


class AuditQuery(PagedQuery):
    """Query of GET /audit."""

    limit: PageLimit = 50


@router.get("/audit", response_model=AuditList, responses=answers(examples.AUDIT, 400))
async def read_audit(
    request: Request, lab: Annotated[Lab, for_keys(*_OPERATE)], query: Annotated[AuditQuery, Query()]
) -> Body:
    """List events with who caused them and from where, the newest first."""
    services = services_of(request)
    pager = Pager(services.cursors, lab.lab_id, IdPrefix.AUDIT)
    async with services.store.reading() as work:
        rows = await work.audit.page(query.limit + 1, after=pager.after(query.cursor))
    shown, following = pager.shown(rows, query.limit, lambda each: PageEnd(each.at, each.event_id))
    data = [
        {
            "id": row.event_id,
            "at": to_iso(row.at),
            "lab_id": row.lab_id,
            "actor": row.actor,
            "address": row.address,
            "action": row.action,
            "target": row.target,
        }
        for row in shown
    ]
    return answer(request, {"data": data, **following})


async def made_key(services: Services, wanted: CreateKeyRequest, by: Actor) -> Body:
    """A new key with its text, which is in this body and nowhere else."""
    unknown = [slug for slug in wanted.collections or () if slug not in services.catalog.collections]
    if unknown:
        raise InvalidRequest(errors=[FieldProblem(("collections",), "Names a collection that is not served here.")])
    made = await services.keys.create(
        wanted.lab_id,
        name=wanted.name,
        plan=Plan(wanted.plan),
        rate_per_minute=wanted.rate_per_minute,
        collections=wanted.collections,
        full_scores=wanted.full_scores,
        scopes=USUAL if wanted.scopes is None else [Scope(scope) for scope in wanted.scopes],
        expires_in=None if wanted.expires_days is None else timedelta(days=wanted.expires_days),
        concurrency=wanted.concurrency,
        by=by,
    )
    return {**_summary(made.row), "key": made.text}


def _summary(row: KeyRow) -> Body:
    shown = {
        "key_id": row.key_id,
        "lab_id": row.lab_id,
        "name": row.name,
        "scopes": list(row.scopes),
        "plan": row.plan,
        "rate_per_minute": row.rate_per_minute,
        "collections": None if row.collections is None else list(row.collections),
        "full_scores": row.full_scores,
        "concurrency": row.concurrency,
        "created_at": to_iso(row.created_at),
        "last_used_at": None if row.last_used_at is None else to_iso(row.last_used_at),
        "expires_at": None if row.expires_at is None else to_iso(row.expires_at),
        "revoked_at": None if row.revoked_at is None else to_iso(row.revoked_at),
    }
    return {name: value for name, value in shown.items() if value is not None}
