"""What an endpoint is given: what its signature declares, after its caller was admitted and its body checked."""

from __future__ import annotations

from pathlib import Path as Folder
from typing import Annotated

import httpx2
import pytest
from fastapi import Path, Query, Request, Response

from reward_server.api.access import for_keys
from reward_server.api.router import Router
from reward_server.auth.lab import Lab as AnyLab
from reward_server.auth.scopes import ANY
from tests.api.test_app import make

router = Router()
Lab = Annotated[AnyLab, for_keys(*ANY)]


@router.get("/plain/{name}")
async def plain(request: Request, lab: Lab, name: str) -> Response:
    return Response(f"{request.method} {lab.lab_id} {name}")


@router.get("/short/{name}")
async def short(request: Request, lab: Lab, name: Annotated[str, Path(max_length=3)]) -> Response:
    return Response(f"{request.method} {lab.lab_id} {name}")


@router.get("/numbers/{number}")
async def numbers(request: Request, lab: Lab, number: int) -> Response:
    return Response(f"{request.method} {lab.lab_id} {number + 1}")


@router.get("/asked")
async def asked(request: Request, lab: Lab, most: Annotated[int, Query(le=5)]) -> Response:
    return Response(f"{request.method} {lab.lab_id} {most}")


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        ("/plain/abcd", 200, "GET development abcd"),
        ("/short/abc", 200, "GET development abc"),
        ("/short/abcd", 400, "name"),
        ("/numbers/3", 200, "GET development 4"),
        ("/numbers/three", 400, "number"),
        ("/asked?most=5", 200, "GET development 5"),
        ("/asked?most=6", 400, "most"),
    ],
)
async def test_an_endpoint_is_given_what_it_declares(tmp_path: Folder, path: str, status: int, told: str) -> None:
    app, _ = make(tmp_path)
    app.router.routes.extend(router.routes)
    async with app.router.lifespan_context(app):
        response = await get(app, path)
        assert (response.status_code, told in response.text) == (status, True), response.text


async def test_a_route_refuses_other_methods_and_hides_what_fails(tmp_path: Folder) -> None:
    failing = Router()

    @failing.get("/fails/{name}")
    async def fails(request: Request, lab: Lab, name: str) -> Response:
        raise RuntimeError(f"{request.method} {lab.lab_id} {name}")

    app, _ = make(tmp_path)
    app.router.routes.extend(failing.routes)
    async with app.router.lifespan_context(app):
        response = await get(app, "/fails/secret")
        assert (response.status_code, response.json()["data"]["code"]) == (500, "internal_error")
        assert "secret" not in response.text
        response = await get(app, "/fails/secret", "PUT")
        assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD, OPTIONS")


async def get(app: object, path: str, method: str = "GET") -> httpx2.Response:
    transport = httpx2.ASGITransport(app=app)  # type: ignore[arg-type]
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
        return await http.request(method, path, headers={"Content-Type": "application/json"})
