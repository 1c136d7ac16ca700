"""`operator` of the asynchronous client: labs, keys and the audit log. Takes a key with the scope `operate`.

`operators.py`, the synchronous twin, is made from this file.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainer_client import operator_calls
from trainer_client.async_jobs import AsyncSend
from trainer_client.operator_calls import Limits
from trainer_client.paging import AsyncPages
from trainer_client.wire import (
    AuditEvent,
    DeletedData,
    KeyResponse,
    KeySummary,
    LabResponse,
    LabSummary,
    NewKeyResponse,
)


class AsyncOperator:
    """What operators look after: `client.operator`."""

    def __init__(self, send: AsyncSend) -> None:
        self._send = send

    def labs(self) -> AsyncPages[LabSummary]:
        """All labs of the server, by their ids."""
        return AsyncPages[LabSummary].of(self._send, operator_calls.labs())

    async def lab(self, lab_id: str) -> LabResponse:
        """One lab."""
        return await self._send(operator_calls.lab(lab_id))

    async def create_lab(
        self,
        lab_id: str,
        *,
        name: str | None = None,
        limits: Limits | None = None,
        idempotency_key: str | None = None,
    ) -> LabResponse:
        """Make a lab; making a key for a new lab does so, too."""
        call = operator_calls.create_lab(lab_id, name=name, limits=limits, idempotency_key=idempotency_key)
        return await self._send(call)

    async def change_lab(self, lab_id: str, *, name: str | None = None, limits: Limits | None = None) -> LabResponse:
        """Change a lab's name or its limits, which are replaced as a whole."""
        return await self._send(operator_calls.change_lab(lab_id, name=name, limits=limits))

    async def delete_lab_data(self, lab_id: str) -> DeletedData:
        """Delete what a lab has stored, for good."""
        return await self._send(operator_calls.delete_lab_data(lab_id))

    def keys(self) -> AsyncPages[KeySummary]:
        """All API keys, the newest first, without their secrets."""
        return AsyncPages[KeySummary].of(self._send, operator_calls.keys())

    async def create_key(
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
    ) -> NewKeyResponse:
        """Make a key; `key` is in this answer and nowhere else."""
        return await self._send(
            operator_calls.create_key(
                lab_id,
                name=name,
                scopes=scopes,
                plan=plan,
                rate_per_minute=rate_per_minute,
                collections=collections,
                full_scores=full_scores,
                expires_days=expires_days,
                concurrency=concurrency,
            )
        )

    async def revoke_key(self, key_id: str) -> KeyResponse:
        """End a key."""
        return await self._send(operator_calls.revoke_key(key_id))

    def audit(self, *, limit: int | None = None, cursor: str | None = None) -> AsyncPages[AuditEvent]:
        """What was done, by whom and from where, the newest first."""
        return AsyncPages[AuditEvent].of(self._send, operator_calls.audit(limit=limit, cursor=cursor))
