"""Author: the private half of a scenario, for whoever wrote it.

That is who runs a server without keys, and so has the files on disk, and a key for authors with its lab's own. What is
shown is what the server loaded; the files on disk are checked as they are at this moment.
"""

from __future__ import annotations

import asyncio

from fastapi import Response

from reward_server.access import scenario_for
from reward_server.api.routes import episodes as api
from reward_server.console import view
from reward_server.console.routing import Pages
from reward_server.console.scenario_files import folder_of
from reward_server.console.visit import Visit
from reward_server.errors import Forbidden, NotFound
from scenarios.library import PublicScenario, load_sound
from scenarios.own import owner_of

pages = Pages()
NOT_ITS_AUTHOR = (
    "The private half of a scenario is for its author: in development mode, or of your lab's own scenarios."
)


@pages.read("/scenarios/{collection}/{scenario}/private", like=api.create_episode)
async def private_half(visit: Visit, collection: str, scenario: str) -> Response:
    """Facts by tier with their conditions, and the rubric by dimension."""
    found = _scenario(visit, collection, scenario)
    is_own = owner_of(collection) is not None
    half = visit.services.insights.private_half(collection, scenario)
    return view.page(
        visit,
        "private.html",
        collection=collection,
        card=found.card,
        half=half,
        is_own=is_own,
        is_editable=folder_of(visit) is not None,
    )


@pages.read("/scenarios/{collection}/{scenario}/findings", like=api.create_episode)
async def findings(visit: Visit, collection: str, scenario: str) -> Response:
    """The findings in the scenario's files, by line, for a part of a page."""
    slug = _scenario(visit, collection, scenario).card.slug
    if owner_of(collection) is not None:
        raise NotFound("This collection is in the database: its page tells what its check found.")
    root = visit.services.settings.scenarios
    _, found = await asyncio.to_thread(load_sound, root, [f"{collection}/{slug}"])
    return view.page(visit, "_findings.html", findings=found)


def _scenario(visit: Visit, collection: str, scenario: str) -> PublicScenario:
    """A scenario whose private half this visitor may see.

    Raises:
        Forbidden: somebody with a key asks.
    """
    found = scenario_for(visit.lab, visit.services.catalog, collection, scenario)
    if not visit.wrote(collection):
        raise Forbidden(NOT_ITS_AUTHOR)
    return found
