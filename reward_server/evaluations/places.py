"""Places that a request's conversations are judged in: a scenario that the lab may use, or a rubric of its own."""

from __future__ import annotations

from dataclasses import dataclass, field

from reward_server.access import scenario_for
from reward_server.auth.lab import Lab
from reward_server.auth.scopes import Scope
from reward_server.scoring.given import GivenRubrics
from reward_server.scoring.request import ScoreRequest
from scenarios.library import Catalog, SealedScenario
from scenarios.rubric_file import GIVEN
from trainer_client.wire import CompareRequest, EvaluateRequest, RankRequest


@dataclass(frozen=True, slots=True)
class Place:
    """Under which names scoring knows it."""

    collection: str
    scenario: str
    title: str
    lent: SealedScenario | None = field(default=None, repr=False)
    """A rubric of the request's own, kept while it is needed."""

    @property
    def names(self) -> tuple[str, str]:
        """Collection and scenario."""
        return self.collection, self.scenario


class Places:
    """Finds it, or says why not."""

    def __init__(self, catalog: Catalog, rubrics: GivenRubrics) -> None:
        self._catalog = catalog
        self._rubrics = rubrics

    def of(self, lab: Lab, request: EvaluateRequest | CompareRequest | RankRequest) -> Place:
        """That of a request.

        Raises:
            LabsError: there is no such scenario, the key may not use it, or the rubric is not sound.
        """
        if request.rubric is None:
            return self._in_catalog(lab, request.collection_slug, request.scenario_slug)
        return _lent(self._rubrics.lend(lab, request.rubric))

    def scored(self, lab: Lab, request: ScoreRequest) -> Place:
        """That of a request which was scored."""
        return self._in_catalog(lab, request.collection, request.scenario) if not request.lent else _lent(request.lent)

    def _in_catalog(self, lab: Lab, collection: str, scenario: str) -> Place:
        return Place(collection, scenario, scenario_for(lab, self._catalog, collection, scenario).card.name)


def _lent(rubric: SealedScenario) -> Place:
    return Place(rubric.collection, rubric.card.slug, rubric.card.name, rubric)


def may_read(lab: Lab, collection: str) -> bool:
    """True if a key may read what was judged in a collection, or by a rubric that came with the request."""
    return lab.may_use(collection) or (collection == GIVEN and Scope.AUTHOR in lab.scopes)
