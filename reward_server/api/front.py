"""The page at `/`: what this server is, and where its console, pages and calls are."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from reward_server.api.context import answer
from reward_server.api.pages import page
from trainer_client.version import __version__

router = APIRouter(include_in_schema=False)

ABOUT = "A reward service for reinforcement learning of conversational agents."
_PLACES = (
    ("console", "console", "Talk to a persona, read conversations, label and run everything in a browser."),
    ("docs", "docs", "Every call, to read and to try."),
    ("openapi", "openapi.json", "The same for machines (OpenAPI 3.1)."),
    ("api", "api/v1/catalog", "The API; this call lists the scenarios."),
    ("health", "readyz", "Whether the server can serve, and what is missing if not."),
)


@router.get("/")
async def front(request: Request) -> Response:
    """Answer with a page for browsers, and with the same as JSON for everybody else."""
    prefix = request.app.state.path_prefix
    places = [each for each in _PLACES if each[0] != "console" or request.app.state.has_console]
    if "text/html" not in request.headers.get("accept", ""):
        links = {name: f"{prefix}/{path}" for name, path, _ in places}
        return JSONResponse(answer(request, {"name": "Labs", "version": __version__, "about": ABOUT, "links": links}))
    rows = "".join(f'<li><a href="{prefix}/{path}">{prefix}/{path}</a><br>{about}</li>' for _, path, about in places)
    return page(_PAGE.format(version=__version__, about=ABOUT, rows=rows))


_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Labs</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1rem; }}
li {{ margin: .75rem 0; }}
</style></head>
<body><main><h1>Labs {version}</h1><p>{about}</p><ul>{rows}</ul></main></body>
</html>
"""
