"""`operator` of the synchronous client: labs, keys and the audit log. Takes a key with the scope `operate`.

Made from `async_operators.py` by `unasync`: edit that one.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainer_client import operator_calls
from trainer_client.jobs import Send
from trainer_client.operator_calls import Limits
from trainer_client.paging import Page
from trainer_client.wire import (
    AuditEvent,
    DeletedData,
    KeyResponse,
    KeySummary,
    LabResponse,
    LabSummary,
    NewKeyResponse,
)


class Operator:
    """What operators look after: `client.operator`."""

    def __init__(self, send: Send) -> None:
        self._send = send

    def labs(self) -> Page[LabSummary]:
        """All labs of the server, by their ids."""
        return Page[LabSummary].of(self._send, operator_calls.labs())

    def lab(self, lab_id: str) -> LabResponse:
        """One lab."""
        return self._send(operator_calls.lab(lab_id))

    def create_lab(
        self,
        lab_id: str,
        *,
        name: str | None = None,
        limits: Limits | None = None,
        idempotency_key: str | None = None,
    ) -> LabResponse:
        """Make a lab; making a key for a new lab does so, too."""
        call = operator_calls.create_lab(lab_id, name=name, limits=limits, idempotency_key=idempotency_key)
        return self._send(call)

    def change_lab(self, lab_id: str, *, name: str | None = None, limits: Limits | None = None) -> LabResponse:
        """Change a lab's name or its limits, which are replaced as a whole."""
        return self._send(operator_calls.change_lab(lab_id, name=name, limits=limits))

    def delete_lab_data(self, lab_id: str) -> DeletedData:
        """Delete what a lab has stored, for good."""
        return self._send(operator_calls.delete_lab_data(lab_id))

    def keys(self) -> Page[KeySummary]:
        """All API keys, the newest first, without their secrets."""
        return Page[KeySummary].of(self._send, operator_calls.keys())

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
    ) -> NewKeyResponse:
        """Make a key; `key` is in this answer and nowhere else."""
        return self._send(
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

    def revoke_key(self, key_id: str) -> KeyResponse:
        """End a key."""
        return self._send(operator_calls.revoke_key(key_id))

    def audit(self, *, limit: int | None = None, cursor: str | None = None) -> Page[AuditEvent]:
        """What was done, by whom and from where, the newest first."""
        return Page[AuditEvent].of(self._send, operator_calls.audit(limit=limit, cursor=cursor))
