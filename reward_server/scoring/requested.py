"""Opens the scenario that a request names, and finds the composition of its reward."""

from __future__ import annotations

from reward_server.errors import CollectionNotFound, NotFound, ScenarioNotFound
from reward_server.scoring.compose import RUBRIC_ALONE, ScoringComposite, composite_of
from reward_server.scoring.request import ScoreRequest
from reward_server.scoring.variant import heard_in
from scenarios.library import Library, SealedScenario
from scenarios.rubric_file import GIVEN

RUBRIC_IS_GONE = (
    "The rubric came with the request and was not stored: send a request with the same rubric, then this one again."
)


class RequestedScenarios:
    """The library, as requests ask for it."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def open(self, collection: str, scenario: str) -> SealedScenario:
        """The scenario of that name; `NotFound` where there is none, which says what is missing."""
        try:
            return self._library.vault.open(collection, scenario)
        except KeyError:
            if collection == GIVEN:
                raise NotFound(RUBRIC_IS_GONE) from None
            known = collection in self._library.catalog.collections
            raise (ScenarioNotFound if known else CollectionNotFound) from None

    def sealed(self, request: ScoreRequest) -> SealedScenario:
        """The variant that the conversation is about."""
        self.open(request.collection, request.scenario)
        return heard_in(self._library.vault, request.collection, request.scenario, request.transcript)

    def composite(self, request: ScoreRequest) -> ScoringComposite:
        """The composition of the reward: a request's word wins over the scenario's."""
        if request.config.composite is not None:
            return request.config.composite
        reward = self.sealed(request).secrets.reward
        return RUBRIC_ALONE if reward is None else composite_of(reward)
