"""The outermost layer of every request: its id, its last resort, its line in the log. Pure ASGI.

Every response carries `X-Request-ID`; one that reached the limiter carries `X-RateLimit-…`. Whatever
nobody caught becomes a 500 that tells nothing; the log gets the kind of error and where, never text
of a conversation.

A request holds a place from its head to the beginning of its answer: a client that does not read keeps nobody else
out. What comes while all places are taken is turned away, cheaply and after a moment, so that clients that ask again
at once leave the server the time to answer the others. Probes need no place.
"""

from __future__ import annotations

import asyncio
import random
import time
import traceback
from typing import Any

from fastapi import Response
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reward_server.api.context import ON_LEAVING
from reward_server.api.errors import error_response
from reward_server.api.pages import NOTHING, SECURITY_HEADERS
from reward_server.api.requests_in_work import RequestsInWork
from reward_server.errors import LabsError, Overloaded, Stopped, StoreUnavailable
from reward_server.ids import IdPrefix, is_id, new_request_id
from reward_server.limits.rate_limiter import RateDecision
from reward_server.logs.logger import get_logger
from reward_server.store.writing import Writes, noting
from reward_server.telemetry.metrics import Metrics
from reward_server.telemetry.traces import Traces

UNMATCHED = "unmatched"
_GONE = 499
"""Not sent: how a request that its client gave up is counted."""

PROBES = frozenset(("/healthz", "/readyz"))
ASKED_BY_MACHINES = PROBES | {"/metrics"}
"""Routes that orchestrators and Prometheus ask every few seconds: in the log, only where they failed."""
TURNED_AWAY_AFTER_S = 0.4
"""On average: how long somebody who gets no place waits to hear so. It costs a timer, asking again costs the loop."""
OVERLOAD_LOGGED_EVERY_S = 5.0

_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_FRAMES = 12
_POLICY = b"content-security-policy"

log = get_logger(__name__)


class RequestBoundary:
    """Wraps the application."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        max_concurrency: int,
        metrics: Metrics,
        traces: Traces | None = None,
        exchanges: RequestsInWork | None = None,
    ) -> None:
        self.app = app
        self.traces = traces or Traces()
        self.max_concurrency = max_concurrency
        self.metrics = metrics
        self.in_work = 0
        self.exchanges = RequestsInWork() if exchanges is None else exchanges
        self._turned_away = 0
        self._told_s = -OVERLOAD_LOGGED_EVERY_S

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection event of the server."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
        elif self.in_work >= self.max_concurrency and scope["path"] not in PROBES:
            await self._turn_away(scope, receive, send)
        else:
            await _Exchange(self, scope, receive, send).serve()

    def take_place(self) -> None:
        """A request begins to be worked on."""
        self.in_work += 1
        self.metrics.requests_in_work.inc()

    def leave_place(self) -> None:
        """There is an answer, or nobody to give it to."""
        self.in_work -= 1
        self.metrics.requests_in_work.dec()

    async def _turn_away(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Say that there is no place; no line in the log for each, as there may be thousands a second."""
        self.metrics.turned_away.inc()
        self._turned_away += 1
        now = time.monotonic()
        if now - self._told_s >= OVERLOAD_LOGGED_EVERY_S:
            log.warning("overloaded", turned_away=self._turned_away, in_work=self.in_work)
            self._turned_away, self._told_s = 0, now
        await asyncio.sleep(TURNED_AWAY_AFTER_S * (0.5 + random.random()))  # noqa: S311 (keeps clients out of step)
        request_id = new_request_id()
        response = error_response(request_id, Overloaded())
        response.headers["X-Request-ID"] = request_id
        if scope["method"] == "HEAD":
            response.body = b""
        await response(scope, receive, send)


class _Exchange:
    """One request and its response."""

    def __init__(self, boundary: RequestBoundary, scope: Scope, receive: Receive, send: Send) -> None:
        self._boundary = boundary
        self._receive = receive
        self._send = send
        self._head = scope["method"] == "HEAD"
        # HEAD is GET without the body; routes need not know.
        self._scope = {**scope, "method": "GET"} if self._head else scope
        self._state = self._scope.setdefault("state", {})
        self._request_id = self._state["request_id"] = new_request_id()
        self._state["trace"] = {}
        self._status = 0
        self._has_place = scope["path"] not in PROBES
        self._task = asyncio.current_task()
        self._writes = Writes()

    def stop(self) -> bool:
        """Cut it short, if nothing is being stored for it at this moment; whether it was."""
        if self._writes.under_way or self._task is None:
            return False
        self._task.cancel()
        return True

    async def serve(self) -> None:
        """Answer, whatever happens, and leave a trace."""
        started = time.perf_counter()
        if self._has_place:
            self._boundary.take_place()
        self._boundary.exchanges.enter(self)
        try:
            with self._boundary.traces.span() as span, noting(self._writes):
                try:
                    await self._answer()
                finally:
                    trace = self._note_episode()
                    span.tell(self._method(), self._template(), self._status or 500, self._request_id, trace)
        finally:
            self._boundary.exchanges.leave(self)
            self._leave_place()
            self._leave_trace(time.perf_counter() - started)

    def _leave_place(self) -> None:
        if self._has_place:
            self._has_place = False
            self._boundary.leave_place()
            leaving = self._state.get(ON_LEAVING)
            if leaving is not None:
                leaving()

    async def _answer(self) -> None:
        try:
            await self._boundary.app(self._scope, self._receive, self._send_with_headers)
        except ClientDisconnect:
            self._status = self._status or _GONE
        except asyncio.CancelledError:
            if self._status or not self._boundary.exchanges.is_stopped:
                raise
            self._state["trace"]["code"] = Stopped.code
            await self._respond(error_response(self._request_id, Stopped()))
        except Exception as error:
            # Not `log.exception`: the message of an unforeseen error may quote anything.
            log.error("request_failed", request_id=self._request_id, error=type(error).__name__, at=_frames(error))  # noqa: TRY400
            if self._status:
                # Part of a response is out already: only breaking the connection tells the client.
                raise
            await self._respond(error_response(self._request_id, LabsError()))

    async def _respond(self, response: Response) -> None:
        await response(self._scope, self._receive, self._send_with_headers)

    async def _send_with_headers(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._leave_place()
            given = list(message.get("headers", ()))
            if not any(name.lower() == _POLICY for name, _ in given):
                given.append((_POLICY, NOTHING))
            message["headers"] = [*given, *self._headers()]
        elif self._head and message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await self._send(message)

    def _headers(self) -> list[tuple[bytes, bytes]]:
        headers = [(b"x-request-id", self._request_id.encode()), *SECURITY_HEADERS]
        decision: RateDecision | None = self._state.get("rate")
        if decision is not None:
            headers += [
                (b"x-ratelimit-limit", b"%d" % decision.limit),
                (b"x-ratelimit-remaining", b"%d" % decision.remaining),
                (b"x-ratelimit-reset", b"%d" % decision.reset_unix),
            ]
        return headers

    def _note_episode(self) -> dict[str, Any]:
        """The trace of the request, with the episode of its path, where a client may write anything."""
        trace: dict[str, Any] = self._state["trace"]
        named = self._scope.get("path_params", {}).get("episode_id")
        if isinstance(named, str) and is_id(named, IdPrefix.EPISODE):
            trace["episode"] = named
        return trace

    def _template(self) -> str:
        return str(getattr(self._scope.get("route"), "path_format", UNMATCHED))

    def _method(self) -> str:
        """The method as a label: a client may send any word, which must not become one."""
        method = "HEAD" if self._head else str(self._scope["method"])
        return method if method in _METHODS else "OTHER"

    def _leave_trace(self, duration_s: float) -> None:
        template, method = self._template(), self._method()
        metrics = self._boundary.metrics
        metrics.requests.labels(template, method, str(self._status or 500)).inc()
        metrics.request_seconds.labels(template, method).observe(duration_s)
        if self._state["trace"].get("code") == StoreUnavailable.code:
            metrics.store_errors.inc()
        failed = not 200 <= self._status < 400
        tell = log.info if failed or template not in ASKED_BY_MACHINES else log.debug
        tell(
            "request",
            request_id=self._request_id,
            method=method,
            route=template,
            status=self._status,
            ms=round(duration_s * 1000, 1),
            address=(self._scope.get("client") or ("-",))[0],
            **self._state["trace"],
        )


def _frames(error: BaseException) -> list[str]:
    """The frames of the error, without the values that were there."""
    return [f"{f.filename}:{f.lineno} {f.name}" for f in traceback.extract_tb(error.__traceback__)[-_FRAMES:]]
