"""Author: the private half of a scenario, for whoever runs a server without keys and so has it on disk."""

from __future__ import annotations

from fastapi import Response

from reward_server.access import scenario_for
from reward_server.api.routes import episodes as api
from reward_server.console import view
from reward_server.console.routing import Pages
from reward_server.console.visit import Visit
from reward_server.errors import Forbidden

pages = Pages()
DEVELOPMENT_ALONE = "The private half of a scenario is shown in development mode alone."


@pages.read("/scenarios/{collection}/{scenario}/private", like=api.create_episode)
async def private_half(visit: Visit, collection: str, scenario: str) -> Response:
    """Facts by tier with their conditions, and the rubric by dimension."""
    found = scenario_for(visit.lab, visit.services.catalog, collection, scenario)
    if not visit.is_open:
        raise Forbidden(DEVELOPMENT_ALONE)
    half = visit.services.insights.private_half(collection, scenario)
    return view.page(visit, "private.html", collection=collection, card=found.card, half=half)
