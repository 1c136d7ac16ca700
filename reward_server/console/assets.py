"""The files that pages load: scripts and styles of ours, and two libraries that come with them.

`vendored.sha256` says what the libraries are; their licences lie beside them. A page names a file with its digest, so
that browsers may keep it for ever.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

from fastapi import Response

from reward_server.api.router import Router
from reward_server.errors import NotFound

router = Router(prefix="/console", include_in_schema=False)
PATH = "/console/assets"
KINDS = {
    "console.css": "text/css",
    "console.js": "text/javascript",
    "plots.js": "text/javascript",
    "htmx.min.js": "text/javascript",
    "uplot.min.js": "text/javascript",
    "uplot.min.css": "text/css",
    "icon.svg": "image/svg+xml",
}
_FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable"}


@cache
def content(name: str) -> bytes:
    """A file; kept, as nobody needs a key to ask for it."""
    return files(__package__).joinpath("static", name).read_bytes()


@cache
def url(name: str) -> str:
    """The URL of a file for pages."""
    return f"{PATH}/{name}?v={hashlib.sha256(content(name)).hexdigest()[:16]}"


@router.get("/assets/{name}")
async def asset(name: str) -> Response:
    """The file."""
    if name not in KINDS:
        raise NotFound
    return Response(content(name), media_type=KINDS[name], headers=_FOR_EVER)
