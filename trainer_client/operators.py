"""`client.operator`: labs, keys and the audit log. Takes a key with the scope `operate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainer_client.calls import Call, checked, post, query_of, segment
from trainer_client.methods import AsyncCallGroup, CallGroup, method, pages_of
from trainer_client.wire import (
    AuditEvent,
    AuditList,
    ChangeLabRequest,
    CreateKeyRequest,
    CreateLabRequest,
    DeletedData,
    KeyList,
    KeyResponse,
    KeySummary,
    LabLimits,
    LabList,
    LabResponse,
    LabSummary,
    NewKeyResponse,
)

Limits = LabLimits | Mapping[str, Any]


class OperatorCalls:
    """Calls for operators."""

    @pages_of(LabSummary)
    def labs(self) -> Call[LabList]:
        """All labs of the server, by their ids."""
        return Call("GET", "/labs", LabList)

    @method
    def lab(self, lab_id: str) -> Call[LabResponse]:
        """One lab."""
        return Call("GET", f"/labs/{segment(lab_id)}", LabResponse)

    @method
    def create_lab(
        self, lab_id: str, *, name: str | None = None, limits: Limits | None = None, idempotency_key: str | None = None
    ) -> Call[LabResponse]:
        """Make a lab; making a key for a new lab does so, too."""
        return post(
            "/labs", checked(CreateLabRequest, lab_id=lab_id, name=name, limits=limits), LabResponse, idempotency_key
        )

    @method
    def change_lab(self, lab_id: str, *, name: str | None = None, limits: Limits | None = None) -> Call[LabResponse]:
        """Change a lab's name or its limits, which are replaced as a whole."""
        request = checked(ChangeLabRequest, name=name, limits=limits)
        body = request.model_dump_json(exclude_none=True).encode()
        return Call("PATCH", f"/labs/{segment(lab_id)}", LabResponse, body=body)

    @method
    def delete_lab_data(self, lab_id: str) -> Call[DeletedData]:
        """Delete what a lab has stored, for good."""
        return Call("DELETE", f"/labs/{segment(lab_id)}/data", DeletedData)

    @pages_of(KeySummary)
    def keys(self) -> Call[KeyList]:
        """All API keys, the newest first, without their secrets."""
        return Call("GET", "/keys", KeyList)

    @method
    def create_key(
        self,
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
        """Make a key; `key` is in this answer and nowhere else."""
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

    @method
    def revoke_key(self, key_id: str) -> Call[KeyResponse]:
        """End a key."""
        return Call("DELETE", f"/keys/{segment(key_id)}", KeyResponse)

    @pages_of(AuditEvent)
    def audit(self, *, limit: int | None = None, cursor: str | None = None) -> Call[AuditList]:
        """List events with who caused them and from where, the newest first."""
        return Call("GET", "/audit", AuditList, query=query_of(limit=limit, cursor=cursor))


class Operator(OperatorCalls, CallGroup):
    """`operator` of the synchronous client."""


class AsyncOperator(OperatorCalls, AsyncCallGroup):
    """`operator` of the asynchronous client."""
