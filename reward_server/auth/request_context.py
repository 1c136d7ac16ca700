"""The request that this task works on, for what depends on the key and is decided deep below the API."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from reward_server.auth.actor import Actor
from reward_server.auth.lab import DEVELOPMENT_LAB, Lab


@dataclass(frozen=True, slots=True)
class RequestContext:
    """A key, and whether it has full scores."""

    actor: Actor
    full_scores: bool


_context: ContextVar[RequestContext | None] = ContextVar("labs_request_context", default=None)


def set_request_context(lab: Lab, address: str) -> None:
    """From here on in this task, and in those it makes, work is for this key. Without keys, it is for the operator."""
    full = lab.full_scores or lab.key_id == DEVELOPMENT_LAB.key_id
    _context.set(RequestContext(Actor(lab.lab_id, lab.key_id, address), full))


def request_context() -> RequestContext | None:
    """Return the caller of this request; None outside of requests and jobs."""
    return _context.get()
