"""The route of every call: FastAPI's, which is told who asks and what a body says in the order of this API.

FastAPI reads and parses a body before its dependencies, whoever sends it and however long it takes, and answers 422. A
`Route` first admits the caller (`tests/contract/test_bodies.py::test_the_key_is_looked_at_before_the_body`), then reads
the body within the limits of its `JsonBody`, and checks it once, from bytes to model. FastAPI gets the model, and does
the rest: path, query, headers, dependencies, the answer's model, the document.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, cast

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope

from reward_server.api.access import LAB, Access, declare, declared_by
from reward_server.api.body import JsonBody
from reward_server.api.context import admit, body_of


class Route(APIRoute):
    """A route of the API."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **given: Any) -> None:
        given["response_model_exclude_unset"] = True
        given["response_description"] = "Success"
        super().__init__(path, endpoint, **given)
        declare(endpoint, self._access())

    @property
    def declared_body(self) -> JsonBody | None:
        """The body that the endpoint declares."""
        info = None if self.body_field is None else self.body_field.field_info
        return info if isinstance(info, JsonBody) else None

    @property
    def body_model(self) -> Any:
        """What it declares it as."""
        return None if self.declared_body is None else self.declared_body.annotation

    def _access(self) -> Access:
        brings = self.body_field is not None or "requestBody" in (self.openapi_extra or {})
        return declared_by(self.dependant, brings=brings)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The framework's handler, behind admission and the reading of the body."""
        handle = super().get_route_handler()
        limited, declared, model = self._access().limited, self.declared_body, self.body_model

        async def handled(request: Request) -> Response:
            if limited:
                setattr(request.state, LAB, await admit(request))
            if declared is None:
                return await handle(request)
            value = await body_of(request, model, declared)
            return await handle(_Checked(request.scope, request.receive, value))

        return handled


class _Checked(Request):
    """A request whose body is a checked value already: what FastAPI asks it for, it hands on to the endpoint."""

    def __init__(self, scope: Scope, receive: Receive, value: Any) -> None:
        super().__init__(scope, receive)
        self._value = value

    async def body(self) -> bytes:
        """The value: FastAPI looks only whether there is one, or hands it on as the body of another media type."""
        return cast(bytes, self._value)

    async def json(self) -> Any:
        """The value."""
        return self._value
