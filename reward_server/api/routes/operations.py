"""/healthz (is the process alive), /readyz (can it serve, and if not, what is missing), /metrics."""

from __future__ import annotations

from fastapi import Request, Response
from pydantic import BaseModel

from reward_server.api.context import Body, address_of, answer, services_of
from reward_server.api.credentials import credentials_of
from reward_server.api.readiness import OK, REDIS
from reward_server.api.router import Router
from reward_server.auth.scopes import Scope
from reward_server.errors import FieldProblem, NotReady
from reward_server.telemetry.metrics import CONTENT_TYPE

router = Router(tags=["operations"])


class Health(BaseModel):
    """Answer of /healthz."""

    status: str
    request_id: str


class Readiness(BaseModel):
    """Answer of /readyz: one word per dependency. `redis`, where one is set, may be `lost`: all is served."""

    status: str
    dependencies: dict[str, str]
    request_id: str


@router.get("/healthz", response_model=Health)
async def healthz(request: Request) -> Body:
    """Answer that the process is alive."""
    return answer(request, {"status": "ok"})


@router.get("/readyz", response_model=Readiness)
async def readyz(request: Request) -> Body:
    """Answer if requests can be served; when not, 503, and `data.errors` names the dependencies that are missing."""
    dependencies = await services_of(request).readiness.look()
    missing = [FieldProblem((name,), state) for name, state in dependencies.items() if state != OK and name != REDIS]
    if missing:
        raise NotReady(missing=missing)
    return answer(request, {"status": "ok", "dependencies": dict(dependencies)})


@router.get("/metrics", include_in_schema=False)
async def metrics(request: Request) -> Response:
    """Prometheus metrics, for everybody or for operators' keys, as the settings say."""
    services = services_of(request)
    if services.settings.metrics_need_a_key:
        # Not counted: whoever scrapes with a key would use up what its calls may.
        lab = await services.gatekeeper.identify(credentials_of(request), address_of(request))
        # What it counts tells how much a scenario asks.
        lab.require(Scope.OPERATE)
    return Response(services.metrics.render(), media_type=CONTENT_TYPE)
