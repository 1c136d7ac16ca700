"""WS /episodes/ws: many episodes over one socket; every operation is what its HTTP call is.

`{"op": "create" | "turn" | "close", "ref", …}` in, `{"ref", …}` out, with the fields of the HTTP bodies. Operations are
worked on side by side and answered as they are done: `ref` says which answer is whose. The key is looked at before the
socket is accepted and again for every operation, which counts as a request; the socket of a key that is no good any
more is closed.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from fastapi import WebSocket
from pydantic_core import from_json, to_json
from starlette.websockets import WebSocketDisconnect

from reward_server.api.body import CONVERSATION, LARGE_BYTES, off_the_loop, read_json, validate
from reward_server.api.charged import played
from reward_server.api.context import API_PREFIX, Body, Services, within
from reward_server.api.errors import error_response
from reward_server.api.router import Router
from reward_server.api.socket_access import BUSY, NO_LONGER_ADMITTED, accepted, admitted, leave_trace
from reward_server.auth.lab import Lab
from reward_server.auth.scopes import Scope
from reward_server.errors import FieldProblem, InvalidRequest, LabsError, Unauthenticated
from reward_server.ids import IdPrefix, is_id, new_request_id
from reward_server.logs.logger import get_logger
from trainer_client.wire import CreateEpisodeRequest, TurnRequest

router = Router(prefix=API_PREFIX)
PATH = f"{API_PREFIX}/episodes/ws"
AT_ONCE = 64
"""Operations of one socket in work; what comes beyond waits unread."""
IDLE_S = 300.0
WRITE_S = 20.0
OPS = ("create", "turn", "close")
UNKNOWN_OP = "unknown"
GONE = 499
"""Not sent: how an operation is counted whose client left."""
MAX_REF_CHARACTERS = 256

log = get_logger(__name__)


@router.websocket("/episodes/ws")
async def play_episodes(websocket: WebSocket) -> None:
    """Serve one socket."""
    async with accepted(websocket, Scope.TRAIN, lambda connections: connections.sockets) as services:
        if services is None:
            return
        socket = _Socket(websocket, services)
        try:
            await socket.serve()
        finally:
            await socket.end()


@dataclass
class _Noted:
    """Fields of an operation for metrics, log and span."""

    request_id: str = field(default_factory=new_request_id)
    ref: Any = None
    op: str = UNKNOWN_OP
    status: int = GONE
    trace: dict[str, Any] = field(default_factory=dict)


@dataclass
class _Socket:
    """One accepted socket and its operations in work."""

    websocket: WebSocket
    services: Services
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    sending: asyncio.Lock = field(default_factory=asyncio.Lock)
    working: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self) -> None:
        """Read operations until the client leaves, or says nothing for long."""
        while True:
            await self.places.acquire()
            data = await self._next()
            if data is None:
                return
            task = asyncio.create_task(self._answer(data))
            self.working.add(task)
            self._say_how_busy()
            task.add_done_callback(self._done)

    async def end(self) -> None:
        """Nobody waits for answers any more; a turn that was begun is finished and stored all the same."""
        for task in self.working:
            task.cancel()
        await asyncio.gather(*self.working, return_exceptions=True)
        await self._close(1001)

    def _done(self, task: asyncio.Task[None]) -> None:
        self.working.discard(task)
        self._say_how_busy()
        self.places.release()

    def _say_how_busy(self) -> None:
        self.websocket.scope["state"][BUSY] = len(self.working)

    async def _next(self) -> bytes | None:
        while True:
            try:
                async with asyncio.timeout(IDLE_S):
                    message = await self.websocket.receive()
            except TimeoutError:
                if self.working:
                    continue
                return None
            if message["type"] == "websocket.disconnect":
                return None
            text: str | None = message.get("text")
            return (message.get("bytes") or b"") if text is None else text.encode()

    async def _answer(self, data: bytes) -> None:
        noted, started = _Noted(), time.perf_counter()
        with self.services.traces.span() as span:
            try:
                reply = await self._replied(data, noted)
            finally:
                span.tell(f"WS {noted.op}", PATH, noted.status, noted.request_id, noted.trace)
                leave_trace(
                    self.websocket,
                    self.services,
                    request_id=noted.request_id,
                    op=noted.op,
                    status=noted.status,
                    duration_s=time.perf_counter() - started,
                    trace=noted.trace,
                )
        await self._send(to_json(reply if noted.ref is None else {"ref": noted.ref, **reply}))
        if noted.trace.get("code") == Unauthenticated.code:
            await self._close(NO_LONGER_ADMITTED)

    async def _replied(self, data: bytes, noted: _Noted) -> Body:
        try:
            reply = {**await self._within_limits(data, noted), "request_id": noted.request_id}
            if "episode_id" in reply:
                noted.trace["episode"] = reply["episode_id"]
            noted.status = 200
        except LabsError as error:
            noted.trace["code"] = error.code
            if noted.ref is None:
                noted.ref = _ref_of(data)
            reply = _refusal(noted.request_id, error)
            noted.status = reply["status"]
        except Exception as error:  # noqa: BLE001 (the boundary of a request)
            # The message of an unforeseen error may quote anything.
            log.error("operation_failed", request_id=noted.request_id, error=type(error).__name__)  # noqa: TRY400
            reply = _refusal(noted.request_id, LabsError())
            noted.status = reply["status"]
        return reply

    async def _within_limits(self, data: bytes, noted: _Noted) -> Body:
        """The answer to one operation, under the limits that its HTTP call has: what they refuse is not read."""
        async with admitted(self.websocket, self.services, noted.trace) as caller:
            caller.lab.require(Scope.TRAIN)
            content = await off_the_loop(_operation, data, CONVERSATION)
            noted.ref = content.pop("ref", None)
            op = content.pop("op", None)
            if op not in OPS:
                raise InvalidRequest(errors=[FieldProblem(("op",), f"Must be one of {', '.join(OPS)}.")])
            noted.op = op
            episode = content.get("episode_id")
            if isinstance(episode, str) and is_id(episode, IdPrefix.EPISODE):
                noted.trace["episode"] = episode
            await caller.enter(stores=op != "close")
            return await self._done_by(caller.lab, op, content)

    async def _done_by(self, lab: Lab, op: str, content: dict[str, Any]) -> Body:
        services, key = self.services, _idempotency_key(content)
        if op == "create":
            create = validate(CreateEpisodeRequest, content)
            return await within(services.settings.request_deadline_s, services.episodes.create(lab, create, key))
        episode_id = content.pop("episode_id", None)
        if not isinstance(episode_id, str):
            raise InvalidRequest(errors=[FieldProblem(("episode_id",), "Is required.")])
        if op == "close":
            if content:
                raise InvalidRequest(errors=[FieldProblem((str(next(iter(content)))[:64],), "Is not a known field.")])
            return await services.episodes.end(lab, episode_id)
        turn = validate(TurnRequest, content)
        return await played(services, lab, episode_id, turn, key)

    async def _send(self, data: bytes) -> None:
        """Send an answer; a client that does not read loses the socket."""
        try:
            async with self.sending, asyncio.timeout(WRITE_S):
                await self.websocket.send_text(data.decode())
        except TimeoutError:
            await self._close(1008)
        except (RuntimeError, WebSocketDisconnect):
            log.debug("socket_gone")

    async def _close(self, code: int) -> None:
        with suppress(RuntimeError, WebSocketDisconnect):
            await self.websocket.close(code)


def _operation(data: bytes) -> dict[str, Any]:
    content = read_json(data)
    if not isinstance(content, dict):
        raise InvalidRequest("An operation is a JSON object.")
    ref = content.get("ref")
    if ref is not None and not _is_ref(ref):
        raise InvalidRequest(errors=[FieldProblem(("ref",), "Must be a number, or text of 256 characters at most.")])
    return content


def _is_ref(value: object) -> bool:
    return type(value) is int or (isinstance(value, str) and len(value) <= MAX_REF_CHARACTERS)


def _ref_of(data: bytes) -> Any:
    """The ref of an operation that was refused, if it is in the beginning: more of it is not worth reading."""
    beginning = data[:LARGE_BYTES].decode(errors="ignore")
    try:
        content = from_json(beginning, allow_partial=True)
    except ValueError:
        return None
    ref = content.get("ref") if isinstance(content, dict) else None
    return ref if _is_ref(ref) and "\x00" not in str(ref) else None


def _refusal(request_id: str, error: LabsError) -> Body:
    """The error envelope of HTTP with what its head would say."""
    response = error_response(request_id, error)
    told: Body = {**from_json(bytes(response.body)), "status": response.status_code}
    if "retry-after" in response.headers:
        told["retry_after_s"] = int(response.headers["retry-after"])
    return told


def _idempotency_key(content: dict[str, Any]) -> str | None:
    key = content.pop("idempotency_key", None)
    if key is None:
        return None
    if not (isinstance(key, str) and 0 < len(key) <= 255 and key.isascii() and key.isprintable()):
        problem = FieldProblem(("idempotency_key",), "Must have 1 to 255 printable ASCII characters.")
        raise InvalidRequest(errors=[problem])
    return key
