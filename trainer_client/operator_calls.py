"""The operators' calls, and what a lab may ask about itself, as data like those in `calls`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainer_client.calls import Call, checked, post, query_of, segment
from trainer_client.wire import (
    AuditList,
    ChangeLabRequest,
    CreateKeyRequest,
    CreateLabRequest,
    DeletedData,
    KeyList,
    KeyResponse,
    LabLimits,
    LabList,
    LabResponse,
    NewKeyResponse,
    UsageResponse,
)

Limits = LabLimits | Mapping[str, Any]


def usage(*, days: int | None = None) -> Call[UsageResponse]:
    """GET /usage."""
    return Call("GET", "/usage", UsageResponse, query=query_of(days=days))


def labs() -> Call[LabList]:
    """GET /labs."""
    return Call("GET", "/labs", LabList)


def lab(lab_id: str) -> Call[LabResponse]:
    """GET /labs/{id}."""
    return Call("GET", f"/labs/{segment(lab_id)}", LabResponse)


def create_lab(
    lab_id: str, *, name: str | None = None, limits: Limits | None = None, idempotency_key: str | None = None
) -> Call[LabResponse]:
    """POST /labs."""
    return post(
        "/labs", checked(CreateLabRequest, lab_id=lab_id, name=name, limits=limits), LabResponse, idempotency_key
    )


def change_lab(lab_id: str, *, name: str | None = None, limits: Limits | None = None) -> Call[LabResponse]:
    """PATCH /labs/{id}."""
    request = checked(ChangeLabRequest, name=name, limits=limits)
    body = request.model_dump_json(exclude_none=True).encode()
    return Call("PATCH", f"/labs/{segment(lab_id)}", LabResponse, body=body)


def delete_lab_data(lab_id: str) -> Call[DeletedData]:
    """DELETE /labs/{id}/data."""
    return Call("DELETE", f"/labs/{segment(lab_id)}/data", DeletedData)


def keys() -> Call[KeyList]:
    """GET /keys."""
    return Call("GET", "/keys", KeyList)


def create_key(
    lab_id: str,
    *,
    name: str | None = None,
    scopes: Sequence[str] | None = None,
    plan: str | None = None,
    rate_per_minute: int | None = None,
    collections: Sequence[str] | None = None,
    full_scores: bool | None = None,
    expires_days: int | None = None,
    concurrency: int | None = None,
) -> Call[NewKeyResponse]:
    """POST /keys."""
    request = checked(
        CreateKeyRequest,
        lab_id=lab_id,
        name=name,
        scopes=None if scopes is None else list(scopes),
        plan=plan,
        rate_per_minute=rate_per_minute,
        collections=None if collections is None else list(collections),
        full_scores=full_scores,
        expires_days=expires_days,
        concurrency=concurrency,
    )
    return post("/keys", request, NewKeyResponse, None)


def revoke_key(key_id: str) -> Call[KeyResponse]:
    """DELETE /keys/{id}."""
    return Call("DELETE", f"/keys/{segment(key_id)}", KeyResponse)


def audit(*, limit: int | None = None, cursor: str | None = None) -> Call[AuditList]:
    """GET /audit."""
    return Call("GET", "/audit", AuditList, query=query_of(limit=limit, cursor=cursor))
