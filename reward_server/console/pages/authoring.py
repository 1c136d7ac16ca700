"""Author: the private half of a scenario, for whoever runs a server without keys and so has it on disk.

What is shown is what the server loaded when it started; the files are checked as they are at this moment.
"""

from __future__ import annotations

import asyncio

from fastapi import Response

from reward_server.access import scenario_for
from reward_server.api.routes import episodes as api
from reward_server.console import view
from reward_server.console.routing import Pages
from reward_server.console.visit import Visit
from reward_server.errors import Forbidden
from scenarios.library import PublicScenario, load_sound

pages = Pages()
DEVELOPMENT_ALONE = "The private half of a scenario is shown in development mode alone."


@pages.read("/scenarios/{collection}/{scenario}/private", like=api.create_episode)
async def private_half(visit: Visit, collection: str, scenario: str) -> Response:
    """Facts by tier with their conditions, and the rubric by dimension."""
    found = _scenario(visit, collection, scenario)
    half = visit.services.insights.private_half(collection, scenario)
    return view.page(visit, "private.html", collection=collection, card=found.card, half=half)


@pages.read("/scenarios/{collection}/{scenario}/findings", like=api.create_episode)
async def findings(visit: Visit, collection: str, scenario: str) -> Response:
    """The findings in the scenario's files, by line, for a part of a page."""
    slug = _scenario(visit, collection, scenario).card.slug
    root = visit.services.settings.scenarios
    _, found = await asyncio.to_thread(load_sound, root, [f"{collection}/{slug}"])
    return view.page(visit, "_findings.html", findings=found)


def _scenario(visit: Visit, collection: str, scenario: str) -> PublicScenario:
    """A scenario whose private half this visitor may see.

    Raises:
        Forbidden: somebody with a key asks.
    """
    found = scenario_for(visit.lab, visit.services.catalog, collection, scenario)
    if not visit.is_open:
        raise Forbidden(DEVELOPMENT_ALONE)
    return found
