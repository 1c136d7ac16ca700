"""Makes responses of templates: escaped throughout, under a policy that runs no script that is written in a page.

Text of agents, personas and people is data. Templates escape it (autoescape is on for all of them), plots get it as
JSON in an attribute, which is escaped as well, and nothing of it is ever a script or a style.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from fastapi import Request, Response
from jinja2 import Environment, PackageLoader, StrictUndefined

from reward_server.api.errors import status_of, wait_of
from reward_server.console import assets, navigation, wording
from reward_server.console.session import COOKIE, LIFETIME_S
from reward_server.console.visit import NOBODY, Visit
from reward_server.errors import InvalidRequest, LabsError
from reward_server.program import called

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {"Content-Security-Policy": POLICY, "Cache-Control": "no-store"}
THEME = "labs_theme"
_THEMES = ("light", "dark")


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("reward_server.console", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.globals["asset"] = assets.url
    made.globals["command"] = called()
    made.filters |= wording.FILTERS
    made.filters["data"] = _data
    return made


def page(visit: Visit, template: str, *, status: int = 200, **context: Any) -> Response:
    """A page, or the part of one that is asked for."""
    shown = {
        "visit": visit,
        "lab": visit.lab,
        "token": visit.token,
        "menu": navigation.menu(visit.lab, visit.request.url.path),
        **_frame(visit.request),
        **context,
    }
    return _html(_environment().get_template(template).render(shown), status)


def plain(request: Request, template: str, *, status: int = 200, **context: Any) -> Response:
    """A page for nobody in particular."""
    return _html(_environment().get_template(template).render({**_frame(request), **context}), status)


def failed(request: Request, error: LabsError, visit: Visit | None) -> Response:
    """The error as a page, with the menu for a visit that was let in, or as a line for the page that asked."""
    told = refusal(request, error)
    if request.headers.get("hx-request") == "true":
        response = plain(request, "_problem.html", **told)
    elif visit is None or visit.lab is NOBODY:
        response = plain(request, "problem.html", **told)
    else:
        response = page(visit, "refused.html", back=navigation.here(visit.lab, request.url.path), **told)
    wait_s = wait_of(error)
    if wait_s is not None:
        response.headers["Retry-After"] = str(wait_s)
    return response


def refusal(request: Request, error: LabsError) -> dict[str, Any]:
    """What a page says of an error, and its status; the log has its code, too."""
    request.state.trace["code"] = error.code
    status = status_of(error)
    return {
        "status": status,
        "message": LabsError.default_message if status == 500 else error.message,
        "problems": error.errors if isinstance(error, InvalidRequest) else (),
        "code": error.code,
        "request_id": request.state.request_id,
    }


def sent(request: Request, url: str) -> Response:
    """Go there, also from a part of a page."""
    if request.headers.get("hx-request") == "true":
        return Response(status_code=200, headers={**_HEADERS, "HX-Redirect": url})
    return Response(status_code=303, headers={**_HEADERS, "Location": url})


def renewed() -> Response:
    """Have the page load again that asked for a part of itself."""
    return Response(status_code=200, headers={**_HEADERS, "HX-Refresh": "true"})


def kept(visit: Visit, response: Response) -> Response:
    """The response, with the cookie of a session that has just begun."""
    if visit.is_new and COOKIE not in response.headers.get("set-cookie", ""):
        give_cookie(response, visit.request, visit.sessions.seal(visit.session))
    return response


def give_cookie(response: Response, request: Request, sealed: str) -> None:
    """Have the browser keep a session; an empty one is forgotten."""
    response.set_cookie(
        COOKIE,
        sealed,
        max_age=LIFETIME_S if sealed else 0,
        path="/console",
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )


def _frame(request: Request) -> dict[str, Any]:
    theme = request.cookies.get(THEME)
    return {"theme": theme if theme in _THEMES else "", "path": request.url.path}


def _html(text: str, status: int) -> Response:
    return Response(text, status_code=status, media_type="text/html", headers=_HEADERS)


def _data(value: object) -> str:
    """JSON for an attribute of an element; the template escapes it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
