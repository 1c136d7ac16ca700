"""GET /catalog, /collections, /collections/{slug}, /collections/{slug}/scenarios/{slug}: the public half only."""

from __future__ import annotations

from typing import Annotated

from fastapi import Request

from reward_server.access import collection_for, scenario_for, visible_collections
from reward_server.api import examples
from reward_server.api.access import for_keys
from reward_server.api.answers import answers
from reward_server.api.context import API_PREFIX, Body, answer, services_of
from reward_server.api.router import Router
from reward_server.auth.lab import Lab
from reward_server.auth.scopes import ANY
from scenarios.library import PublicCollection, PublicScenario
from trainer_client.wire import CatalogResponse, CollectionResponse, ScenarioResponse

router = Router(prefix=API_PREFIX, tags=["catalog"])


@router.get("/catalog", response_model=CatalogResponse, responses=answers(examples.CATALOG))
async def read_catalog(request: Request, lab: Annotated[Lab, for_keys(*ANY)]) -> Body:
    """The collections and scenarios this key may use."""
    return _catalog(request, lab)


@router.get("/collections", response_model=CatalogResponse, responses=answers(examples.CATALOG))
async def list_collections(request: Request, lab: Annotated[Lab, for_keys(*ANY)]) -> Body:
    """The same as /catalog."""
    return _catalog(request, lab)


@router.get(
    "/collections/{collection_slug}",
    response_model=CollectionResponse,
    responses=answers(examples.COLLECTION, 403, 404),
)
async def read_collection(request: Request, lab: Annotated[Lab, for_keys(*ANY)], collection_slug: str) -> Body:
    """One collection."""
    collection = collection_for(lab, services_of(request).catalog, collection_slug)
    return answer(request, collection_in_short(collection))


@router.get(
    "/collections/{collection_slug}/scenarios/{scenario_slug}",
    response_model=ScenarioResponse,
    responses=answers(examples.SCENARIO, 403, 404),
)
async def read_scenario(
    request: Request, lab: Annotated[Lab, for_keys(*ANY)], collection_slug: str, scenario_slug: str
) -> Body:
    """One scenario, with the personas that `config.persona_slug` may name, and its tools."""
    scenario = scenario_for(lab, services_of(request).catalog, collection_slug, scenario_slug)
    return answer(request, scenario_in_full(scenario))


def _catalog(request: Request, lab: Lab) -> Body:
    visible = visible_collections(lab, services_of(request).catalog)
    return answer(request, {"collections": [collection_in_short(collection) for collection in visible]})


def scenario_in_full(found: PublicScenario) -> Body:
    """A scenario with the personas that may be asked for, and its tools."""
    tools = [tool.shown() for tool in found.card.tools]
    return {**_scenario(found), "personas": list(found.personas), "tool_definitions": tools}


def collection_in_short(found: PublicCollection) -> Body:
    """A collection, with the cards of its scenarios."""
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
