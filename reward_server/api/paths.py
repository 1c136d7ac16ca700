"""Middleware for paths: removes the prefix that a proxy adds, and a slash too many. Pure ASGI.

A proxy may take the prefix away or leave it; both reach the same routes. A slash at the end means the same as none:
trainers are configured with addresses that people write.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send


class PlainPaths:
    """Looks routes up without the prefix and without a slash at the end."""

    def __init__(self, app: ASGIApp, *, prefix: str) -> None:
        self.app = app
        self._prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection event of the server."""
        if scope["type"] in ("http", "websocket"):
            # In place: what logs the request reads the scope afterwards.
            scope["path"] = self._plain(scope["path"])
        await self.app(scope, receive, send)

    def _plain(self, path: str) -> str:
        if self._prefix and (path == self._prefix or path.startswith(f"{self._prefix}/")):
            path = path[len(self._prefix) :]
        return path.removesuffix("/") or "/"
