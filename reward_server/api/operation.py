"""The declaration of a route for the OpenAPI document.

Routes take and return bytes, so the framework cannot see their schemas; `@operation` hands them over.
`api.openapi` turns what is declared here into the document.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel

from reward_server.auth.scopes import ANY, Scope

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
_ATTRIBUTE = "labs_operation"
SCHEME = "ApiKey"
"""The name of API keys in the OpenAPI document."""


@dataclass(frozen=True)
class Operation:
    """Schemas, statuses and examples of one operation, and who may call it."""

    response: type[BaseModel]
    request: type[BaseModel] | None = None
    errors: tuple[int, ...] = ()
    request_example: Mapping[str, Any] = field(default_factory=dict)
    response_example: Mapping[str, Any] | Sequence[Any] = field(default_factory=dict)
    request_media: str = ""
    """The media type of a body that is no JSON, such as an upload."""
    response_media: str = "application/json"
    """The media type of a success; of anything but JSON, `response` describes one line or event."""
    stream_media: str = ""
    """The media type of the same success where the request asks for a stream."""
    events: tuple[str, ...] = ()
    """The names of a stream's server-sent events; `response` is what their data says."""
    is_event_json: bool = True
    """Whether the data of each event is JSON by itself; if not, it is text."""
    retryable: bool = False
    """Whether the call takes an `Idempotency-Key`."""
    scopes: tuple[Scope, ...] = field(kw_only=True)
    """A key needs one of these, which `api.context.Caller` sees to; `ANY` for every key, `NOBODY` for no key at all."""

    @property
    def limited(self) -> bool:
        """True if the call is authenticated and counted, which adds headers and 401, 429."""
        return bool(self.scopes)

    @property
    def audited(self) -> bool:
        """True if each such call is kept in the audit log: those that are for operators or exports alone."""
        return self.limited and {Scope.OPERATE, Scope.EXPORT}.issuperset(self.scopes)

    @property
    def stores(self) -> bool:
        """True if the call may store conversations, which takes room."""
        brings = self.request is not None or bool(self.request_media)
        return brings and not {Scope.TRAIN, Scope.SCORE, Scope.LABEL}.isdisjoint(self.scopes)

    @property
    def security(self) -> list[dict[str, list[str]]]:
        """The same in OpenAPI's words: one requirement for each scope that will do."""
        names = [[]] if self.scopes == ANY else [[scope.value] for scope in self.scopes]
        return [{SCHEME: name} for name in names]


def operation(declared: Operation) -> Callable[[Endpoint], Endpoint]:
    """A decorator that attaches the declaration to an endpoint."""

    def attach(endpoint: Endpoint) -> Endpoint:
        setattr(endpoint, _ATTRIBUTE, declared)
        return endpoint

    return attach


def operation_of(endpoint: Callable[..., Any]) -> Operation:
    """The declaration of an endpoint; every documented one has one."""
    declared: Operation = getattr(endpoint, _ATTRIBUTE)
    return declared
