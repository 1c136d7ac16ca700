"""`/openapi.json` and the interactive documentation at `/docs`, whose assets are served from here: it works offline.

The assets (Swagger UI, MIT and Apache-2.0) are the files of the package `fastapi-offline`; its code is not used.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from fastapi import Request, Response
from fastapi.openapi.docs import get_swagger_ui_html

from reward_server.api.openapi import build as build_openapi
from reward_server.api.openapi import render
from reward_server.api.pages import page
from reward_server.api.router import Router
from reward_server.errors import NotFound

router = Router(include_in_schema=False)

_ASSETS = {
    "swagger-ui-bundle.js": "text/javascript",
    "swagger-ui.css": "text/css",
    "favicon.png": "image/png",
}
_PACKAGE = "fastapi_offline"


@router.get("/openapi.json")
async def openapi_document(request: Request) -> Response:
    """The OpenAPI 3.1 document."""
    rendered: bytes | None = getattr(request.app.state, "openapi", None)
    if rendered is None:
        document = build_openapi(request.app)
        if prefix := request.app.state.path_prefix:
            document["servers"] = [{"url": prefix}]
        rendered = request.app.state.openapi = render(document).encode()
    return Response(rendered, media_type="application/json")


@router.get("/docs")
async def docs(request: Request) -> Response:
    """The page."""
    prefix = request.app.state.path_prefix
    html = get_swagger_ui_html(
        openapi_url=f"{prefix}/openapi.json",
        title="Labs API",
        swagger_js_url=f"{prefix}/docs/assets/swagger-ui-bundle.js",
        swagger_css_url=f"{prefix}/docs/assets/swagger-ui.css",
        swagger_favicon_url=f"{prefix}/docs/assets/favicon.png",
    )
    return page(bytes(html.body).decode())


@router.get("/docs/assets/{name}")
async def asset(name: str) -> Response:
    """One file of the page."""
    if name not in _ASSETS:
        raise NotFound
    # Not in a thread: it is read once, and whoever waited for a thread would hold a place meanwhile, without a key.
    headers = {"Cache-Control": "public, max-age=86400"}
    return Response(_content(name), media_type=_ASSETS[name], headers=headers)


@cache
def _content(name: str) -> bytes:
    """Kept: nobody needs a key to ask for it."""
    return files(_PACKAGE).joinpath("static", name).read_bytes()
