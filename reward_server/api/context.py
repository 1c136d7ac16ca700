"""Parts that routes share: the services of this app, the caller, the body in, the answer out."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Header, Request
from pydantic import AfterValidator, WithJsonSchema
from starlette.requests import ClientDisconnect, HTTPConnection

from reward_server.agents.leaderboard import Leaderboard
from reward_server.agents.service import AgentService
from reward_server.api.access import access_of
from reward_server.api.auth import Gatekeeper
from reward_server.api.body import FORM, ROOM, JsonBody, Limit, off_the_loop, parse, read_body
from reward_server.api.credentials import Credentials, credentials_of
from reward_server.api.cursor import CursorCodec
from reward_server.api.edge import require_json
from reward_server.api.problems import in_words
from reward_server.api.readiness import ReadinessChecks
from reward_server.auth.actor import Actor
from reward_server.auth.audit import AuditLog
from reward_server.auth.idempotency import DetachedWork
from reward_server.auth.key_ring import KeyRing
from reward_server.auth.lab import DEVELOPMENT_LAB, Lab
from reward_server.auth.request_context import set_request_context
from reward_server.auth.tenants import Tenants
from reward_server.authoring.service import OwnScenarios
from reward_server.clock import Clock
from reward_server.episodes.service import EpisodeService
from reward_server.errors import FieldProblem, InvalidRequest, NotReady, RateLimited, Unavailable
from reward_server.evaluations.drift import DriftService
from reward_server.evaluations.ranking import RankingService
from reward_server.evaluations.service import EvaluationService
from reward_server.jobs.files import FileService
from reward_server.jobs.service import JobService
from reward_server.limits.bytes_in_flight import BytesInFlight, Reservation
from reward_server.limits.compute_budget import ComputeBudget
from reward_server.limits.concurrency_limit import ConcurrencySlot, LabConcurrencyLimit
from reward_server.limits.connections import OpenConnections
from reward_server.limits.fair_threads import work_for
from reward_server.limits.storage import StorageQuota
from reward_server.limits.usage import UsageMeter
from reward_server.preferences.criteria import CriterionLabels
from reward_server.preferences.service import PreferenceService
from reward_server.reward_models.calibration import CalibrationShelf
from reward_server.reward_models.service import RewardModelService
from reward_server.scoring.insight import Insights
from reward_server.settings import Settings
from reward_server.store.store import Store
from reward_server.telemetry.metrics import Metrics
from reward_server.telemetry.traces import Traces
from reward_server.training.service import TrainingRunService
from reward_server.training.serving import ServedRuns
from reward_server.webhooks.service import WebhookService
from scenarios.library import Catalog

API_PREFIX = "/api/v1"
T = TypeVar("T")
Body = dict[str, Any]
MAX_IDEMPOTENCY_KEY_CHARACTERS = 255
ADMITTED = "admitted"
"""In the state of a request: the id of the lab that asks, and may."""
ON_LEAVING = "on_leaving"
"""In the state of a request: to be called when it leaves its place."""


@dataclass(frozen=True)
class Services:
    """Everything the routes call; made by `app` when the server starts."""

    settings: Settings
    clock: Clock
    store: Store
    catalog: Catalog
    gatekeeper: Gatekeeper
    cursors: CursorCodec
    episodes: EpisodeService
    evaluations: EvaluationService
    rankings: RankingService
    insights: Insights
    preferences: PreferenceService
    criterion_labels: CriterionLabels
    webhooks: WebhookService
    agents: AgentService
    own_scenarios: OwnScenarios
    leaderboard: Leaderboard
    calibrations: CalibrationShelf
    drift: DriftService
    reward_models: RewardModelService
    files: FileService
    jobs: JobService
    training_runs: TrainingRunService
    served_runs: ServedRuns
    metrics: Metrics
    traces: Traces
    readiness: ReadinessChecks
    concurrency_limit: LabConcurrencyLimit
    connections: OpenConnections
    bytes_in_flight: BytesInFlight
    compute: ComputeBudget
    usage: UsageMeter
    storage: StorageQuota
    audit: AuditLog
    keys: KeyRing
    tenants: Tenants
    outliving: DetachedWork
    stopping: threading.Event = field(default_factory=threading.Event)
    """Set as soon as the server is told to end: what could go on for ever ends by itself then."""


def services_of(request: HTTPConnection) -> Services:
    """The services of the app that serves this request."""
    services: Services | None = getattr(request.app.state, "services", None)
    if services is None:
        raise NotReady
    return services


async def admit(request: Request) -> Lab:
    """The lab that is asking, with a key for this call and JSON where it changes something; counted by its limit."""
    require_json(request)
    return await admitted(request, credentials_of(request))


async def admitted(request: Request, given: Credentials) -> Lab:
    """The same for whoever brings these credentials, wherever they were found."""
    services = services_of(request)
    address = address_of(request)
    admission = await services.gatekeeper.admit(given, address)
    request.state.trace |= {"lab": admission.lab.lab_id, "key": admission.lab.key_id}
    work_for(admission.lab.lab_id)
    set_request_context(admission.lab, address)
    request.scope["state"][ADMITTED] = admission.lab.lab_id
    await services.reward_models.current()  # a model that was activated elsewhere serves from this request on
    decision = admission.decision
    if decision is not None:
        request.state.rate = decision
        if not decision.allowed:
            services.metrics.rate_limited.inc()
            raise RateLimited(retry_after_s=decision.retry_after_s)
    await _require(services, request, admission.lab)
    if admission.lab is not DEVELOPMENT_LAB:
        slot = await services.concurrency_limit.enter(admission.lab)
        room = Reservation(services.bytes_in_flight.of(admission.lab.lab_id))
        request.scope["state"] |= {ROOM: room, ON_LEAVING: partial(_leave, services, slot, room)}
    services.usage.count(admission.lab.lab_id, requests=1)
    return admission.lab


def _leave(services: Services, slot: ConcurrencySlot, room: Reservation) -> None:
    services.concurrency_limit.leave(slot)
    room.leave()


async def readmit(request: Request) -> Lab:
    """Return the lab of a caller again, for what goes on after `admit`; counted against no limit.

    Raises:
        Unauthenticated: the key was revoked, or has run out.
        ScopeMissing: it is for other calls now.
    """
    lab = await services_of(request).gatekeeper.identify(credentials_of(request), address_of(request))
    lab.require(*access_of(request.scope["route"].endpoint).scopes)
    return lab


async def _require(services: Services, request: Request, lab: Lab) -> None:
    """The scopes of the call, and room for what it may store; calls that somebody may ask about are kept."""
    declared = access_of(request.scope["route"].endpoint)
    lab.require(*declared.scopes)
    if declared.stores:
        await services.storage.require_room(lab)
    if declared.audited:
        route = request.scope["route"].path_format.removeprefix(API_PREFIX)
        await services.audit.note(actor_of(request, lab), f"{request.method} {route}", request.url.path)


def address_of(request: HTTPConnection) -> str:
    """The address that a request comes from; behind a proxy on this machine, the one that the proxy names."""
    return request.client.host if request.client else ""


def actor_of(request: HTTPConnection, lab: Lab) -> Actor:
    """The caller, for the audit log."""
    return Actor(lab.lab_id, lab.key_id, address_of(request))


async def body_by(work: Callable[[bytes], T], request: Request, limit: Limit) -> T:
    """Return the result of `work` on the body, which is no larger than the route allows."""
    body = await read_body(request, limit_bytes=int(limit.megabytes * 1_000_000))
    return await off_the_loop(work, body, limit)


async def body_of(request: Request, model: type[Any], declared: JsonBody) -> Any:
    """The body as an endpoint declared it."""
    return await body_by(declared.read or partial(parse, model), request, declared.limit)


async def _small_body(request: Request) -> None:
    """A body that nobody reads has to be small all the same."""
    await body_by(lambda _: None, request, FORM)


SMALL_BODY = Depends(_small_body)


def _printable(key: str) -> str:
    if not (0 < len(key) <= MAX_IDEMPOTENCY_KEY_CHARACTERS and key.isascii() and key.isprintable()):
        raise ValueError(f"must have 1 to {MAX_IDEMPOTENCY_KEY_CHARACTERS} printable ASCII characters")
    return key


def idempotency_key(request: Request) -> str | None:
    """The same header, of a call that takes the short cut."""
    return usable_key(request.headers.get("idempotency-key"), "header", "Idempotency-Key")


def usable_key(key: str | None, *loc: str) -> str | None:
    """The key, if it may be one; `InvalidRequest` names the place that it was found in."""
    try:
        return None if key is None else _printable(key)
    except ValueError as error:
        problem = FieldProblem(loc, in_words({"type": "value_error", "ctx": {"error": error}}))
        raise InvalidRequest(errors=[problem]) from None


_KEY_SCHEMA = {"type": "string", "minLength": 1, "maxLength": MAX_IDEMPOTENCY_KEY_CHARACTERS}
IdempotencyKey = Annotated[
    Annotated[str, AfterValidator(_printable), WithJsonSchema(_KEY_SCHEMA)] | None,
    Header(
        alias="Idempotency-Key",
        description="Makes a retry safe: the same key and body return the stored response for 24 hours.",
    ),
]
"""The header of calls that may be sent again; without it they are None."""


async def within(deadline_s: float, work: Coroutine[Any, Any, T]) -> T:
    """The result in time; what takes longer goes on, and the same request sent again finds its answer."""
    try:
        async with asyncio.timeout(deadline_s):
            return await work
    except TimeoutError:
        raise Unavailable("The response takes longer than allowed; send the same request again.") from None


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result; the work is cancelled when the client hangs up, so that nobody pays for what nobody will read.

    To be used once the body has been read. Raises `ClientDisconnect`.
    """
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    except asyncio.CancelledError:
        # The server stops: what was being stored is answered all the same.
        working.cancel()
        await asyncio.wait({working})
        return working.result()
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def answer(request: Request, body: Body) -> Body:
    """A success: the documented fields and the `request_id`."""
    return {**body, "request_id": request.state.request_id}
