"""The application class: FastAPI with only those layers around the routes that have something to do here.

Each layer costs every request a coroutine or two. Left out are the framework's answer to an unforeseen error, which
`RequestBoundary` gives, its limit of the body's size, which `api.body` has for each door, and its telemetry. That would
tell OpenTelemetry the text of errors, which may quote anything; `telemetry.traces` tells what may be told.
"""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.middleware.asyncexitstack import AsyncExitStackMiddleware
from fastapi.telemetry import TelemetryConfig
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.types import ASGIApp

NO_TELEMETRY: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False}


class App(FastAPI):
    """The application."""

    def build_middleware_stack(self) -> ASGIApp:
        """The layers that were added, the first outermost; then the handlers of errors, and the routes."""
        handlers = dict(self.exception_handlers)
        app: ASGIApp = ExceptionMiddleware(AsyncExitStackMiddleware(self.router), handlers=handlers)
        for layer, args, kwargs in reversed(self.user_middleware):
            app = layer(app, *args, **kwargs)
        return app
