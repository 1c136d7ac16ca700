"""The router of every route: HTTP calls reach their endpoint without the framework's general machinery.

Nearly all endpoints take the request, the lab that asks, and text from the path. The framework finds out anew in each
call what that is, inside two exit stacks that nothing here enters: as much work as a short endpoint does. Routes of
that shape are called at once; all others, such as those with a query, by the framework.
"""

from __future__ import annotations

import inspect
from typing import Any

from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope, Send

from reward_server.api.context import admit


class DirectRoute(APIRoute):
    """A route that calls its endpoint itself, where that takes what nearly all take."""

    def __init__(self, path: str, endpoint: Any, **given: Any) -> None:
        super().__init__(path, endpoint, **given)
        self._is_direct = self._takes_the_usual()

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that matched."""
        if not self._is_direct or scope["method"] not in (self.methods or ()):
            await super().handle(scope, receive, send)
            return
        request = Request(scope, receive, send)
        lab = await admit(request)
        response = await self.endpoint(request=request, lab=lab, **scope["path_params"])
        await response(scope, receive, send)

    def _takes_the_usual(self) -> bool:
        needs = self.dependant
        others = (needs.query_params, needs.header_params, needs.cookie_params, needs.body_params)
        texts = {field.name for field in needs.path_params if field.field_info.annotation is str}
        constrained = any(field.field_info.metadata for field in needs.path_params)
        return (
            inspect.iscoroutinefunction(self.endpoint)
            and [(each.name, each.call) for each in needs.dependencies] == [("lab", admit)]
            and set(inspect.signature(self.endpoint).parameters) == {"request", "lab", *texts}
            and not constrained
            and not any(others)
        )


class Router(APIRouter):
    """The routes of a module; the app takes them over as they are, so that each is looked at once and not twice."""

    def __init__(self, **given: Any) -> None:
        super().__init__(route_class=DirectRoute, generate_unique_id_function=lambda route: route.name, **given)
