"""Refuses web pages that reach the server under a name of theirs, or change something without a word of JSON.

A page in somebody's browser can send requests to a server that only this browser reaches. It cannot read the answers,
but a server without keys would do what it asks. Two things stop that. A page that had its own name point here sends
that name as `Host`: only names of ours are served, and addresses, which no page can borrow. And without asking first,
which is never granted, a page can send no request that says it is JSON. A call without a body need not say so: it is
refused if a page of others makes it, which browsers tell with `Origin`. Pure ASGI, inside the boundary.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from reward_server.api.errors import error_response
from reward_server.errors import NotJson, UnknownHost

ANY = "*"
_CHANGING = frozenset(("POST", "PUT", "PATCH"))
_JSON_LINES = ("application/jsonl", "application/x-ndjson")
_NO_BODY = ("", "application/octet-stream")
"""What clients say of a body that they do not send; aiohttp says the second."""
_ASKED_FOR = ("authorization", "x-api-key", "x-session-id")
"""Headers that no page can send without asking first."""
_POLICY_VIOLATED = 1008


class KnownHosts:
    """Serves requests to the names given, and to addresses."""

    def __init__(self, app: ASGIApp, *, names: Collection[str]) -> None:
        self.app = app
        self._names = frozenset(names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection event of the server."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._is_known(host) or (scope["type"] == "websocket" and not _same_origin(headers.get("origin"), host)):
            await self._refuse(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def _is_known(self, host: str) -> bool:
        name = _name_of(host)
        return ANY in self._names or not host or name in self._names or _is_address(name)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": _POLICY_VIOLATED})
            return
        scope["state"]["trace"]["code"] = UnknownHost.code
        await error_response(scope["state"]["request_id"], UnknownHost())(scope, receive, send)


def require_json(connection: HTTPConnection) -> None:
    """`NotJson` for a request that changes something and is of another type."""
    if connection.scope.get("method") not in _CHANGING:
        return
    kind = connection.headers.get("content-type", "").partition(";")[0].strip().lower()
    is_json = kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))
    if not is_json and kind not in _JSON_LINES and (kind not in _NO_BODY or not _is_empty_and_ours(connection.headers)):
        raise NotJson


def _is_empty_and_ours(headers: Headers) -> bool:
    """A call without a body need not say what it has not, unless a page of others makes it.

    Browsers send `Origin` with each request that is neither GET nor HEAD
    (https://fetch.spec.whatwg.org/#append-a-request-origin-header), and no page can send `_ASKED_FOR` without asking.
    """
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    asked = any(name in headers for name in _ASKED_FOR)
    return not has_body and (asked or _same_origin(headers.get("origin"), headers.get("host", "")))


def _name_of(host: str) -> str:
    """The name of `name:port`, without the brackets of an IPv6 address."""
    return (urlsplit(f"//{host}").hostname or "") if host.isascii() and host.isprintable() else ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _same_origin(origin: str | None, host: str) -> bool:
    """True if a page of this server asks, or no page at all."""
    return origin is None or urlsplit(origin).netloc.lower() == host.lower()
