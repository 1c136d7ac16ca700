"""Maps the paths that clients of the Open Reward Standard call to those of Labs. Pure ASGI, inside the boundary.

Clients drop the path of the address they are given, and ask at the root of the server. openreward and TRL also leave
out the environment, which their header `X-Deployment` names. Both are put right before the routes are looked up.
"""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from reward_server.compat.ors_tasks import ANY

OF_ENVIRONMENTS = frozenset(
    ("tools", "splits", "tasks", "num_tasks", "task", "task_range", "prompt", "task_tools", "call")
)
OF_ALL = frozenset(("list_environments", "create_session", "create", "ping", "delete", "delete_session", "health"))
_NOT_THEIRS = frozenset(("api", "v1", "docs"))
"""First parts of paths that are not of an environment."""


class AtTheRoot:
    """Sends calls of these clients to their routes."""

    def __init__(self, app: ASGIApp, *, prefix: str) -> None:
        self.app = app
        self._prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection event of the server."""
        if scope["type"] == "http":
            # In place: what logs the request reads the scope afterwards.
            scope["path"] = self._path_of(scope)
        await self.app(scope, receive, send)

    def _path_of(self, scope: Scope) -> str:
        path: str = scope["path"]
        environment, _, call = path.removeprefix(self._prefix).removeprefix("/").rpartition("/")
        if call in OF_ALL:
            return path if environment else f"{self._prefix}/{call}"
        if call not in OF_ENVIRONMENTS or environment.partition("/")[0] in _NOT_THEIRS:
            return path
        return f"{self._prefix}/{environment or deployment_of(Headers(scope=scope)) or ANY}/{call}"


def deployment_of(headers: Headers) -> str:
    """The environment that openreward and TRL name, beside the call."""
    return headers.get("x-deployment", "").strip().strip("/")
