"""GET /catalog, /collections, /collections/{slug}, /collections/{slug}/scenarios/{slug}: the public half only."""

from __future__ import annotations

from fastapi import Request, Response

from reward_server.access import collection_for, scenario_for, visible_collections
from reward_server.api import examples
from reward_server.api.context import API_PREFIX, Body, Caller, answer, services_of
from reward_server.api.operation import Operation, operation
from reward_server.api.router import Router
from reward_server.auth.lab import Lab
from reward_server.auth.scopes import ANY
from scenarios.library import PublicCollection, PublicScenario
from trainer_client.wire import CatalogResponse, CollectionResponse, ScenarioResponse

router = Router(prefix=API_PREFIX, tags=["catalog"])
_CATALOG = Operation(CatalogResponse, scopes=ANY, response_example=examples.CATALOG)


@router.get("/catalog")
@operation(_CATALOG)
async def read_catalog(request: Request, lab: Caller) -> Response:
    """The collections and scenarios this key may use."""
    return _catalog(request, lab)


@router.get("/collections")
@operation(_CATALOG)
async def list_collections(request: Request, lab: Caller) -> Response:
    """The same as /catalog."""
    return _catalog(request, lab)


@router.get("/collections/{collection_slug}")
@operation(Operation(CollectionResponse, scopes=ANY, errors=(403, 404), response_example=examples.COLLECTION))
async def read_collection(request: Request, lab: Caller, collection_slug: str) -> Response:
    """One collection."""
    found = collection_for(lab, services_of(request).catalog, collection_slug)
    return answer(request, _collection(found))


@router.get("/collections/{collection_slug}/scenarios/{scenario_slug}")
@operation(Operation(ScenarioResponse, scopes=ANY, errors=(403, 404), response_example=examples.SCENARIO))
async def read_scenario(request: Request, lab: Caller, collection_slug: str, scenario_slug: str) -> Response:
    """One scenario, with the personas that `config.persona_slug` may name, and its tools."""
    found = scenario_for(lab, services_of(request).catalog, collection_slug, scenario_slug)
    tools = [tool.shown() for tool in found.card.tools]
    return answer(request, {**_scenario(found), "personas": list(found.personas), "tool_definitions": tools})


def _catalog(request: Request, lab: Lab) -> Response:
    visible = visible_collections(lab, services_of(request).catalog)
    return answer(request, {"collections": [_collection(found) for found in visible]})


def _collection(found: PublicCollection) -> Body:
    card = found.card
    return {
        "slug": card.slug,
        "name": card.name,
        "description": card.description,
        "version": card.version,
        "scenarios": [_scenario(scenario) for scenario in found.scenarios.values()],
    }


def _scenario(found: PublicScenario) -> Body:
    card = found.card
    return {
        "slug": card.slug,
        "name": card.name,
        "description": card.description,
        "dimensions": list(found.dimensions),
        "max_turns": card.max_turns,
        "tools": len(card.tools),
        **({"splits": list(found.splits)} if found.splits else {}),
    }
