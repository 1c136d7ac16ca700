"""Routing of pages: each stands for a call of the API, and lets in whoever may make that call.

A page is admitted and counted as its call is: key or token, scopes, rate, places, room, audit log. What goes wrong
becomes a page; who has no key, or has one no more, is sent to enter one and then back to where they wanted to go.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope, Send

from reward_server.api.access import Access, access_of, declare
from reward_server.console import view
from reward_server.console.visit import visit_of
from reward_server.errors import LabsError, NotReady, Unauthenticated

ROOT = "/console"
LOGIN = f"{ROOT}/login"
Page = Callable[..., Awaitable[Response]]
Call = Callable[..., Any]
_FOR_ALL = "labs_console_for_all"


class PageRoute(APIRoute):
    """A route that calls its page with the visit and what the path names."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that matched."""
        if scope["method"] not in (self.methods or ()):
            await super().handle(scope, receive, send)
            return
        request = Request(scope, receive, send)
        response = await self._answer(request)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        visit = None
        try:
            visit = await visit_of(request, admits=not getattr(self.endpoint, _FOR_ALL, False))
            return view.kept(visit, await self.endpoint(visit, **request.path_params))
        except NotReady:
            raise
        except Unauthenticated:
            return view.sent(request, _login_for(request))
        except LabsError as error:
            return view.failed(request, error, visit)


class Pages(APIRouter):
    """The pages of a module."""

    def __init__(self) -> None:
        super().__init__(prefix=ROOT, route_class=PageRoute, include_in_schema=False)

    def read(self, path: str, *, like: Call | Access) -> Callable[[Page], Page]:
        """A page that shows something: for whoever may make the call `like`."""
        return self._of("GET", path, like)

    def change(self, path: str, *, like: Call | Access) -> Callable[[Page], Page]:
        """Register the handler of a page's form: for whoever may make the call `like`."""
        return self._of("POST", path, like)

    def for_all(self, method: str, path: str) -> Callable[[Page], Page]:
        """A page that needs no key."""

        def add(page: Page) -> Page:
            setattr(page, _FOR_ALL, True)
            self._add(method, path, page)
            return page

        return add

    def _of(self, method: str, path: str, like: Call | Access) -> Callable[[Page], Page]:
        declared = like if isinstance(like, Access) else access_of(like)

        def add(page: Page) -> Page:
            declare(page, declared)
            self._add(method, path, page)
            return page

        return add

    def _add(self, method: str, path: str, page: Page) -> None:
        # The framework would look for parameters in the signature, and pages have none that it knows.
        async def endpoint() -> None: ...

        self.add_api_route(path, endpoint, methods=[method], name=page.__name__)
        route = self.routes[-1]
        assert isinstance(route, PageRoute)
        route.endpoint = page


def _login_for(request: Request) -> str:
    """The URL at which to enter a key, and where to go on with it."""
    if request.method != "GET":
        return LOGIN
    wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return LOGIN if wanted == ROOT else f"{LOGIN}?next={quote(wanted, safe='')}"
