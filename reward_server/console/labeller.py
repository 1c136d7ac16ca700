"""Under which name a visitor labels, kept sealed in a cookie of their browser."""

from __future__ import annotations

from fastapi import Response

from reward_server.console.visit import Visit

PERSON = "labs_labeller"
YEAR_S = 31_536_000


def person_of(visit: Visit) -> str:
    """The name under which this visitor labels; empty if they gave none."""
    known = visit.sessions.open_value(visit.request.cookies.get(PERSON, ""))
    return known if isinstance(known, str) else ""


def remember(visit: Visit, response: Response, name: str) -> None:
    """Have the browser keep the name; an empty one is forgotten."""
    sealed = visit.sessions.seal_value(name[:64])
    response.set_cookie(PERSON, sealed, max_age=YEAR_S, path="/console", httponly=True, samesite="strict")
