"""Entering and leaving: a key goes in, a cookie comes out."""

from __future__ import annotations

from fastapi import Response

from reward_server.api.context import address_of
from reward_server.api.credentials import Credentials
from reward_server.console import view
from reward_server.console.routing import LOGIN, ROOT, Pages
from reward_server.console.session import MAX_KEY_CHARACTERS
from reward_server.console.visit import Visit
from reward_server.errors import NotFound, Unauthenticated

pages = Pages()
TOO_LONG = f"This is longer than a key may be here: {MAX_KEY_CHARACTERS:,} characters."


@pages.for_all("GET", "/login")
async def login(visit: Visit) -> Response:
    """The page on which a key is entered."""
    wanted = visit.request.query_params.get("next", "")
    return view.plain(visit.request, "login.html", token=visit.token, next=_ours(wanted), problem="")


@pages.for_all("POST", "/login")
async def enter(visit: Visit) -> Response:
    """Take a key, if it is one."""
    key, wanted = visit.form.line("key"), _ours(visit.form.line("next"))
    problem = await _refusal(visit, key)
    if problem:
        return view.plain(visit.request, "login.html", token=visit.token, next=wanted, problem=problem, status=401)
    response = view.sent(visit.request, wanted or ROOT)
    # A new session for the key: nobody may have chosen its mark before.
    session = visit.sessions.begin(visit.services.clock.now(), key or None)
    view.give_cookie(response, visit.request, visit.sessions.seal(session))
    return response


@pages.for_all("POST", "/logout")
async def leave(visit: Visit) -> Response:
    """Forget the key."""
    response = view.sent(visit.request, LOGIN)
    view.give_cookie(response, visit.request, "")
    return response


@pages.for_all("GET", "/{rest:path}")
async def nowhere(visit: Visit, rest: str) -> Response:
    """The page for whatever else is asked for below /console; the last route there is."""
    raise NotFound("There is no such page.")


async def _refusal(visit: Visit, key: str) -> str:
    """The reason why a key is not taken; nothing where it is."""
    if len(key) > MAX_KEY_CHARACTERS:
        return TOO_LONG
    try:
        await visit.services.gatekeeper.identify(Credentials(key or None), address_of(visit.request))
    except Unauthenticated as error:
        visit.request.state.trace["code"] = error.code
        return "This key is not valid. Is a part of it missing?"
    return ""


def _ours(path: str) -> str:
    """A page of the console to go on to; nothing for any other address."""
    is_here = path == ROOT or path.startswith((f"{ROOT}/", f"{ROOT}?"))
    return path if is_here and "\\" not in path and path.isprintable() else ""
