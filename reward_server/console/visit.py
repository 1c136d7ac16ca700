"""A visit: who asks for a page, with which session, and what the form brings."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from fastapi import Request

from reward_server.api.context import Services, admitted, services_of
from reward_server.api.credentials import Credentials
from reward_server.auth.lab import DEVELOPMENT_LAB, Lab
from reward_server.auth.pepper import pepper_of
from reward_server.auth.scopes import Scope
from reward_server.console.forms import Form, form_of
from reward_server.console.session import COOKIE, BrowserSession, Sessions
from reward_server.errors import Forbidden
from scenarios.own import owner_of

_STATE = "console_sessions"
TOKEN_FIELD = "token"  # noqa: S105 (the name of a field)
TOKEN_HEADER = "x-labs-console"  # noqa: S105
STALE = "This page is too old to change anything. Reload it and try again."


@dataclass(frozen=True, slots=True)
class Visit:
    """One request for a page."""

    request: Request
    services: Services
    sessions: Sessions
    session: BrowserSession
    is_new: bool
    """Whether the browser has to be given the cookie of the session."""
    lab: Lab
    form: Form = field(default_factory=Form)

    @property
    def is_open(self) -> bool:
        """True if nobody needs a key (development mode)."""
        return self.lab is DEVELOPMENT_LAB

    @property
    def sees_why(self) -> bool:
        """True if this visitor may read what a reward rests on.

        A key with full scores may. Without keys, who asks is who runs the server and has the scenarios on disk.
        """
        return self.lab.full_scores or self.is_open

    def wrote(self, collection: str) -> bool:
        """True if this visitor is an author of the collection, and so may read its private half.

        Of the lab's own collections, a key for authors is; of all others, who runs the server without keys.
        """
        owner = owner_of(collection)
        return self.is_open if owner is None else owner == self.lab.lab_id and Scope.AUTHOR in self.lab.scopes

    @property
    def is_partial(self) -> bool:
        """True if a part of a page is asked for, to be put into it."""
        return self.request.headers.get("hx-request") == "true"

    @property
    def token(self) -> str:
        """The token that the forms of this page bring."""
        return self.sessions.token(self.session)


NOBODY = Lab(lab_id="", key_id="", per_minute=None, collections=(), scopes=frozenset())
"""Who has not entered a key yet."""


async def sessions_of(request: Request) -> Sessions:
    """The sessions of this server."""
    kept: Sessions | None = getattr(request.app.state, _STATE, None)
    if kept is None:
        kept = Sessions(await asyncio.to_thread(pepper_of, services_of(request).settings))
        setattr(request.app.state, _STATE, kept)
    return kept


async def visit_of(request: Request, *, admits: bool) -> Visit:
    """The visit of a request; with `admits`, of somebody whose key may make the call that the page stands for.

    Raises:
        Unauthenticated: no key was entered, or it is no good any more.
        Forbidden: the form is none that this session was given.
    """
    services, sessions = services_of(request), await sessions_of(request)
    now = services.clock.now()
    known = sessions.open(request.cookies.get(COOKIE, ""), now)
    session = known or sessions.begin(now)
    form = Form()
    if request.method == "POST":
        form = await form_of(request)
        given = request.headers.get(TOKEN_HEADER) or form.text(TOKEN_FIELD)
        if not sessions.is_token(session, given):
            raise Forbidden(STALE)
    lab = await admitted(request, Credentials(session.key)) if admits else NOBODY
    return Visit(request, services, sessions, session, known is None, lab, form)
