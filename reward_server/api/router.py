"""The router of a module of routes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import APIRouter

from reward_server.api.route import Route
from reward_server.api.short_cut import HotRoute

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


class Router(APIRouter):
    """The routes of a module; the app takes them over as they are, so that each is looked at once and not twice."""

    def __init__(self, **given: Any) -> None:
        super().__init__(route_class=Route, generate_unique_id_function=lambda route: route.name, **given)

    def hot(self, path: str, **given: Any) -> Callable[[Endpoint], Endpoint]:
        """As `post`, for a call that takes the short cut."""

        def add(endpoint: Endpoint) -> Endpoint:
            self.add_api_route(path, endpoint, methods=["POST"], route_class_override=HotRoute, **given)
            return endpoint

        return add
