"""The short cut of the hottest calls: a turn, an evaluation, and their batches.

Their endpoints are declared as all others are, and documented by FastAPI. But they are called at once with what the
signature names, and what they return is sent without a pass through the model of the answer, which contract tests hold
it against (`tests/contract/documented.py`). `python -m benchmarks.short_cut` measures both ways by turns: 0.3 ms of CPU
as an ordinary route, 0.1 ms by the short cut, where a turn costs 1.3 ms outside the persona and the judges.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from fastapi import Request
from pydantic_core import to_json
from starlette.types import Receive, Scope, Send

from reward_server.api.context import admit, body_of, idempotency_key
from reward_server.api.errors import json_response
from reward_server.api.route import Route


class HotRoute(Route):
    """A route that calls its endpoint itself: with the request, the lab, the body, the key and text from the path."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **given: Any) -> None:
        super().__init__(path, endpoint, **given)
        declared = self.declared_body
        if declared is None:
            raise TypeError(f"{path}: a hot call has a JsonBody")
        self._declared = declared
        self._body_name = self.dependant.body_params[0].name
        usual = {"request", "lab", "key", self._body_name, *self.param_convertors}
        if set(inspect.signature(endpoint).parameters) != usual:
            raise TypeError(f"{path}: a hot call takes {', '.join(sorted(usual))}")

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that matched."""
        if scope["method"] not in (self.methods or ()):
            await super().handle(scope, receive, send)
            return
        request = Request(scope, receive, send)
        lab = await admit(request)
        named = {self._body_name: await body_of(request, self.body_model, self._declared)}
        key = idempotency_key(request)
        body = await self.endpoint(request=request, lab=lab, key=key, **named, **scope["path_params"])
        await json_response(to_json(body))(scope, receive, send)
