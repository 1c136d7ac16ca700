"""Access of a lab to the catalog and to answers.

Unknown collections and scenarios are not found, known ones may be out of bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reward_server.auth.idempotency import Body
from reward_server.auth.lab import DEVELOPMENT_LAB, Lab
from reward_server.auth.scopes import Scope
from reward_server.errors import CollectionNotFound, Forbidden, InvalidRequest, ScenarioNotFound
from scenarios.library import Catalog, PublicCollection, PublicScenario
from scenarios.own import owner_of
from scenarios.spelling import meant

CAPS = ("capped_by", "capped_by_a", "capped_by_b")
FULL_SCORES_ONLY = frozenset({"score_breakdown", *CAPS})
"""Fields of answers for keys with full score access."""
EVALUATORS_ONLY = frozenset({"persona_slug", "seed"})
"""What was drawn for an episode: for these and for operators. An agent that knew could tell what is said next."""

NO_PERSONA = "This scenario is a rubric without a persona: have finished conversations scored by it."


def visible_collections(lab: Lab, catalog: Catalog) -> Iterator[PublicCollection]:
    """The collections that the lab's key may use."""
    known = tuple(catalog.collections.items())  # what labs bring comes and goes
    return (found for slug, found in known if lab.may_use(slug) and is_for(lab, slug))


def is_for(lab: Lab, collection: str) -> bool:
    """Whether a collection is for everybody, or this lab brought it; for others it is not there."""
    return owner_of(collection) in (None, lab.lab_id)


def collection_for(lab: Lab, catalog: Catalog, slug: str) -> PublicCollection:
    """The collection, if it exists and the key may use it."""
    found = catalog.collections.get(slug)
    if found is None or not is_for(lab, slug):
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


def played_for(lab: Lab, catalog: Catalog, collection: str, scenario: str) -> PublicScenario:
    """The same, if it has a persona to be played with."""
    found = scenario_for(lab, catalog, collection, scenario)
    if not found.is_played:
        raise InvalidRequest(NO_PERSONA)
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
    if lab.key_id == DEVELOPMENT_LAB.key_id:
        # Without keys, who asks is who runs the server, and wants to know why a reward stands still.
        shown |= {name: body[name] for name in CAPS if body.get(name)}
    return shown
