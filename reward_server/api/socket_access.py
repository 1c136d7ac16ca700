"""Access over a socket: the key before it is accepted, and each operation under the limits of a request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import WebSocket

from reward_server.api.context import Services, address_of, services_of
from reward_server.api.credentials import credentials_of
from reward_server.api.errors import error_response
from reward_server.auth.lab import DEVELOPMENT_LAB, Lab
from reward_server.auth.request_context import set_request_context
from reward_server.auth.scopes import Scope
from reward_server.errors import LabsError, RateLimited, Stopped, StoreUnavailable
from reward_server.ids import new_request_id
from reward_server.limits.bytes_in_flight import LabBytes
from reward_server.limits.connections import LabConnections, OpenConnections
from reward_server.limits.fair_threads import work_for
from reward_server.logs.logger import get_logger

BUSY = "socket_operations"
"""In the state of a socket: how many operations are in work."""
LAB = "lab_of_socket"
"""In the state of an accepted socket: the id of its lab."""
SHARE = "bytes_in_flight"
"""In the state of an accepted socket: the bytes in flight of its lab, a `LabBytes`; none in development mode."""

NO_LONGER_ADMITTED = 1008
"""With this a socket is closed whose key was good when it was opened: after the answer that says so."""

log = get_logger(__name__)


@asynccontextmanager
async def accepted(
    websocket: WebSocket, scope: Scope, kind: Callable[[OpenConnections], LabConnections]
) -> AsyncIterator[Services | None]:
    """Accept the socket of a key that has the scope, count it as open, and hold a slot of that kind for its lab.

    Yields None if the key may not open it, or if all places of the lab are taken. The handshake is then refused with
    the response of an HTTP call.
    """
    with ExitStack() as held:
        services = await _let_in(websocket, scope, kind, held)
        if services is not None:
            await websocket.accept()
            held.enter_context(services.metrics.sockets_open.track_inprogress())
        yield services


async def _let_in(
    websocket: WebSocket, scope: Scope, kind: Callable[[OpenConnections], LabConnections], held: ExitStack
) -> Services | None:
    try:
        services = services_of(websocket)
        lab = await services.gatekeeper.identify(credentials_of(websocket), address_of(websocket))
        lab.require(scope)
        held.enter_context(kind(services.connections).held(lab.lab_id))
        websocket.scope["state"][LAB] = lab.lab_id
        if lab is not DEVELOPMENT_LAB:
            websocket.scope["state"][SHARE] = services.bytes_in_flight.of(lab.lab_id)
    except LabsError as error:
        request_id = new_request_id()
        response = error_response(request_id, error)
        response.headers["X-Request-ID"] = request_id
        await websocket.send_denial_response(response)
        return None
    return services


@dataclass
class OperationAccess:
    """The lab behind one operation."""

    lab: Lab
    services: Services
    leaving: AsyncExitStack

    async def enter(self, *, stores: bool) -> None:
        """Take one of the lab's places until the operation is done; there is room for what it stores."""
        if stores:
            await self.services.storage.require_room(self.lab)
        if self.lab is DEVELOPMENT_LAB:
            return
        slot = await self.services.concurrency_limit.enter(self.lab)
        self.leaving.callback(self.services.concurrency_limit.leave, slot)
        self.services.usage.count(self.lab.lab_id, requests=1)


def weighs(websocket: WebSocket, size: int) -> None:
    """An operation of so many bytes is in work; with a negative size, it is done."""
    share: LabBytes | None = websocket.scope["state"].get(SHARE)
    if share is not None:
        share.change(size)


@asynccontextmanager
async def admitted(websocket: WebSocket, services: Services, trace: dict[str, Any]) -> AsyncIterator[OperationAccess]:
    """The lab of an operation, counted against its limit as a request is."""
    async with AsyncExitStack() as leaving:
        if services.stopping.is_set():
            raise Stopped
        admission = await services.gatekeeper.admit(credentials_of(websocket), address_of(websocket))
        lab, decision = admission.lab, admission.decision
        trace |= {"lab": lab.lab_id, "key": lab.key_id}
        work_for(lab.lab_id)
        set_request_context(lab, address_of(websocket))
        await services.reward_models.current()
        if decision is not None and not decision.allowed:
            services.metrics.rate_limited.inc()
            raise RateLimited(retry_after_s=decision.retry_after_s)
        yield OperationAccess(lab, services, leaving)


def leave_trace(
    websocket: WebSocket,
    services: Services,
    *,
    request_id: str,
    op: str,
    status: int,
    duration_s: float,
    trace: dict[str, Any],
) -> None:
    """Count an operation, and leave its line in the log, as for a request."""
    services.metrics.socket_operations.labels(op, str(status)).inc()
    services.metrics.socket_operation_seconds.labels(op).observe(duration_s)
    if trace.get("code") == StoreUnavailable.code:
        services.metrics.store_errors.inc()
    ms = round(duration_s * 1000, 1)
    address = address_of(websocket)
    log.info("operation", request_id=request_id, op=op, status=status, ms=ms, address=address, **trace)
