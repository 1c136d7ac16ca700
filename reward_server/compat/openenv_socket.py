"""The socket of OpenEnv: one is one session with one episode at a time, whose messages are answered in order.

A step that could not be scored is an error, which leaves the session as it was: the step may be sent again. A message
counts as a request, under the same limits; one that they refuse is not read.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from fastapi import WebSocket
from pydantic_core import to_json
from starlette.websockets import WebSocketDisconnect

from reward_server.api.body import CONVERSATION, off_the_loop, read_json, validate
from reward_server.api.context import Body, Services
from reward_server.api.errors import status_of
from reward_server.api.router import Router
from reward_server.api.socket_access import (
    BUSY,
    NO_LONGER_ADMITTED,
    OperationAccess,
    accepted,
    admitted,
    leave_trace,
    weighs,
)
from reward_server.auth.scopes import Scope
from reward_server.compat.openenv import PATH, AgentTurn, Reset, begun, stepped
from reward_server.errors import (
    ClientError,
    FieldProblem,
    InvalidRequest,
    LabsError,
    Overloaded,
    RateLimited,
    Unauthenticated,
    in_a_line,
)
from reward_server.ids import new_request_id
from reward_server.logs.logger import get_logger

router = Router(prefix=PATH)
SOCKET_PATH = f"{PATH}/ws"
IDLE_S = 3600.0
"""A policy may think for long between two steps."""
WRITE_S = 20.0
CLOSE = "close"
KINDS = ("reset", "step", "state", CLOSE)
CLOSE_BYTES = 256
"""A message of this size costs less to read than to admit; the `close` of a client is far shorter."""

log = get_logger(__name__)


@router.websocket("/ws")
async def openenv_session(websocket: WebSocket) -> None:
    """Serve one session."""
    async with accepted(websocket, Scope.TRAIN, lambda connections: connections.sessions) as services:
        if services is None:
            return
        try:
            await _Session(websocket, services).serve()
        finally:
            with suppress(RuntimeError, WebSocketDisconnect):
                await websocket.close(1000)


@dataclass
class _Session:
    """One socket, whose messages are worked on one after the other."""

    websocket: WebSocket
    services: Services
    episode: str | None = None
    steps: int = 0

    async def serve(self) -> None:
        """Until the client leaves or closes, or says nothing for long."""
        with suppress(TimeoutError, WebSocketDisconnect, RuntimeError):
            while True:
                async with asyncio.timeout(IDLE_S):
                    message = await self.websocket.receive()
                if message["type"] == "websocket.disconnect":
                    return
                text: str | None = message.get("text")
                self.websocket.scope["state"][BUSY] = 1
                reply = await self._weighed((message.get("bytes") or b"") if text is None else text.encode())
                if reply is None:
                    return
                async with asyncio.timeout(WRITE_S):
                    await self.websocket.send_text(to_json(reply).decode())
                self.websocket.scope["state"][BUSY] = 0
                if reply["data"].get("labs_code") == Unauthenticated.code:
                    await self.websocket.close(NO_LONGER_ADMITTED)
                    return

    async def _weighed(self, data: bytes) -> Body | None:
        weighs(self.websocket, len(data))
        try:
            return await self._answered(data)
        finally:
            weighs(self.websocket, -len(data))

    async def _answered(self, data: bytes) -> Body | None:
        """The answer to a message; None for the last one. It leaves a line in the log, as a request does."""
        trace: dict[str, Any] = {}
        request_id = new_request_id()
        kind, status, started = "unknown", 200, time.perf_counter()
        try:
            # A session may end whatever its key may still do: a client may wait for that.
            if _is_close(data):
                kind = CLOSE
                return None
            async with admitted(self.websocket, self.services, trace) as caller:
                caller.lab.require(Scope.TRAIN)
                content = await off_the_loop(_message, data, CONVERSATION)
                kind = content["type"]
                if kind == CLOSE:
                    return None
                answer = await self._done(caller, kind, content.get("data", {}))
                return {"type": "state" if kind == "state" else "observation", "data": answer}
        except LabsError as error:
            trace["code"], status = error.code, status_of(error)
            return _refusal(error)
        except Exception as error:  # noqa: BLE001 (the boundary of a request)
            # The message of an unforeseen error may quote anything.
            log.error("operation_failed", request_id=request_id, error=type(error).__name__)  # noqa: TRY400
            status = status_of(LabsError())
            return _refusal(LabsError())
        finally:
            duration_s = time.perf_counter() - started
            leave_trace(
                self.websocket,
                self.services,
                request_id=request_id,
                op=kind,
                status=status,
                duration_s=duration_s,
                trace=trace,
            )

    async def _done(self, caller: OperationAccess, kind: str, data: Any) -> Body:
        await caller.enter(stores=kind != "state")
        if kind == "state":
            return {"episode_id": self.episode, "step_count": self.steps}
        if kind == "reset":
            self.episode, answer = await begun(self.services, caller.lab, validate(Reset, data))
            self.steps = 0
            return answer
        if self.episode is None:
            raise InvalidRequest("There is no episode yet: send a reset first.")
        self.steps, answer = await stepped(self.services, caller.lab, self.episode, validate(AgentTurn, data))
        return answer


def _is_close(data: bytes) -> bool:
    """True if a message is one that its sender needs no permission for."""
    if len(data) > CLOSE_BYTES:
        return False
    try:
        kind: str = _message(data)["type"]
    except InvalidRequest:
        return False
    return kind == CLOSE


def _message(data: bytes) -> dict[str, Any]:
    try:
        content = read_json(data)
    except InvalidRequest as error:
        raise _NotJson(error.message) from None
    if not isinstance(content, dict) or content.get("type") not in KINDS:
        raise _UnknownType(errors=[FieldProblem(("type",), f"Must be one of {', '.join(KINDS)}.")])
    return content


class _NotJson(InvalidRequest):
    """The message is not JSON."""


class _UnknownType(InvalidRequest):
    """The message is of no known type."""


def _refusal(error: LabsError) -> Body:
    """An error in OpenEnv's words."""
    codes: tuple[tuple[type[LabsError], str], ...] = (
        (_NotJson, "INVALID_JSON"),
        (_UnknownType, "UNKNOWN_TYPE"),
        (RateLimited, "CAPACITY_REACHED"),
        (Overloaded, "CAPACITY_REACHED"),
        (ClientError, "VALIDATION_ERROR"),
    )
    code = next((code for kind, code in codes if isinstance(error, kind)), "EXECUTION_ERROR")
    return {"type": "error", "data": {"message": in_a_line(error), "code": code, "labs_code": error.code}}
