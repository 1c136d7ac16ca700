"""All routes of the console, in the order in which they are asked for."""

from __future__ import annotations

from collections.abc import Iterator

from starlette.routing import BaseRoute

from reward_server.console import assets
from reward_server.console.pages import (
    authoring,
    charts,
    criteria,
    entrance,
    jobs,
    labelling,
    models,
    operating,
    own_scenarios,
    play,
    ranking,
    reading,
    scenario_files,
    training,
    webhooks,
    wrong_turns,
)

MODULES = (
    play,
    authoring,
    own_scenarios,
    scenario_files,
    wrong_turns,
    reading,
    charts,
    labelling,
    criteria,
    ranking,
    jobs,
    training,
    models,
    webhooks,
    operating,
    entrance,
)


def routes() -> Iterator[BaseRoute]:
    """The routes that the app serves at /console."""
    yield from assets.router.routes
    for module in MODULES:
        yield from module.pages.routes
