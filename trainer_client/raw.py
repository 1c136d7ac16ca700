"""`with_raw_response`: the calls of a client with the HTTP side of their answers."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from trainer_client.calls import Call, ItemLike, TurnLike, checked, encoded, new_key, post
from trainer_client.lab_calls import LabCalls
from trainer_client.methods import AsyncRawCaller, RawCaller, method
from trainer_client.wire import BatchResponse, BatchTurnsRequest, BatchTurnsResponse


class SingleRequests:
    """One request of calls that a client makes of several."""

    @method
    def batch_turns(self, items: Sequence[TurnLike], idempotency_key: str | None = None) -> Call[BatchTurnsResponse]:
        """One step of up to 100 episodes."""
        request = checked(BatchTurnsRequest, items=list(items))
        return post("/batch/turns", request, BatchTurnsResponse, idempotency_key)

    @method
    def batch_evaluate(self, items: Sequence[ItemLike], idempotency_key: str | None = None) -> Call[BatchResponse]:
        """Score up to 100 conversations.

        Items given as mappings are sent as they are: the server judges each on its own.
        """
        plain = [item.model_dump(exclude_none=True) if isinstance(item, BaseModel) else dict(item) for item in items]
        key = idempotency_key or new_key()
        return Call("POST", "/batch/evaluate", BatchResponse, body=encoded({"items": plain}), idempotency_key=key)


class RawCalls(LabCalls, SingleRequests, RawCaller):
    """Every call of the synchronous client that is one request."""


class AsyncRawCalls(LabCalls, SingleRequests, AsyncRawCaller):
    """Every call of the asynchronous client that is one request."""
