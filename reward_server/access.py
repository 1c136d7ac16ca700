"""Access of a lab to the catalog and to answers.

Unknown collections and scenarios are not found, known ones may be out of bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reward_server.auth.idempotency import Body
from reward_server.auth.lab import DEVELOPMENT_LAB, Lab
from reward_server.auth.scopes import Scope
from reward_server.errors import CollectionNotFound, Forbidden, ScenarioNotFound
from scenarios.library import Catalog, PublicCollection, PublicScenario
from scenarios.spelling import meant

FULL_SCORES_ONLY = frozenset({"score_breakdown", "capped_by"})
"""Fields of answers for keys with full score access."""
EVALUATORS_ONLY = frozenset({"persona_slug", "seed"})
"""What was drawn for an episode: for these and for operators. An agent that knew could tell what is said next."""


def visible_collections(lab: Lab, catalog: Catalog) -> Iterator[PublicCollection]:
    """The collections that the lab's key may use."""
    return (found for slug, found in catalog.collections.items() if lab.may_use(slug))


def collection_for(lab: Lab, catalog: Catalog, slug: str) -> PublicCollection:
    """The collection, if it exists and the key may use it."""
    found = catalog.collections.get(slug)
    if found is None:
        seen = (known.card.slug for known in visible_collections(lab, catalog))
        raise CollectionNotFound(CollectionNotFound.default_message + meant(slug, seen))
    if not lab.may_use(slug):
        raise Forbidden("This API key has no access to this collection.")
    return found


def scenario_for(lab: Lab, catalog: Catalog, collection: str, scenario: str) -> PublicScenario:
    """The scenario, if it exists and the key may use its collection."""
    there = collection_for(lab, catalog, collection).scenarios
    found = there.get(scenario)
    if found is None:
        raise ScenarioNotFound(ScenarioNotFound.default_message + meant(scenario, there))
    return found


def collections_asked_for(lab: Lab, collection: str | None) -> Sequence[str] | None:
    """The collections of a search: the one asked for, if the key may use it, else all it may; None: all."""
    if collection is None:
        return lab.collections
    return [collection] if lab.may_use(collection) else []


def require_all_of(lab: Lab, collections: Sequence[str] | None, what: str) -> None:
    """Refuse what was made by a key with more collections (`Forbidden`): it may hold what this key may not see."""
    if not lab.may_use_all(collections):
        raise Forbidden(f"This API key has no access to all collections that this {what} may use.")


def for_key(lab: Lab, body: Body) -> Body:
    """The body as this key may see it: answers are stored whole, and a lab may have several keys."""
    shown = scored_for_key(lab, body)
    if lab.full_scores or Scope.OPERATE in lab.scopes:
        return shown
    return {name: value for name, value in shown.items() if name not in EVALUATORS_ONLY}


def scored_for_key(lab: Lab, body: Body) -> Body:
    """The same for what tells of no draw: a seed in the result of a job is one that the job was given."""
    if lab.full_scores:
        return body
    shown = {name: value for name, value in body.items() if name not in FULL_SCORES_ONLY}
    if lab.key_id == DEVELOPMENT_LAB.key_id and body.get("capped_by"):
        # Without keys, who asks is who runs the server, and wants to know why a reward stands still.
        shown["capped_by"] = body["capped_by"]
    return shown
