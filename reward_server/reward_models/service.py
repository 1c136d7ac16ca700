"""What the API does with reward models: list them, and let one serve. All that reads a disk happens in a thread."""

from __future__ import annotations

import asyncio

from personas.matcher import Matcher
from reward_server.errors import Conflict, LabsError, UnusableModel
from reward_server.reward_models.artefact import Artefact, Card
from reward_server.reward_models.fitness import unfit
from reward_server.reward_models.registry import Registry
from reward_server.reward_models.serving import ActiveRewardModel, Featurise
from reward_server.telemetry.logs import get_logger

log = get_logger(__name__)


class RewardModelService:
    """The models of one server and the one that serves."""

    def __init__(self, registry: Registry, featurise: Featurise, matcher: Matcher | None = None) -> None:
        self._registry = registry
        self._featurise = featurise
        self.active = ActiveRewardModel(registry, featurise, matcher)

    async def all(self) -> list[tuple[Card, bool]]:
        """The cards, newest first, and whether the model serves."""
        return await asyncio.to_thread(self._all)

    async def activate(self, model_id: str, *, force: bool = False) -> Card:
        """Verify a model and let it serve; the next request finds it loaded.

        Raises:
            RewardModelNotFound: there is no such model.
            Conflict: it is damaged, or made for another encoder or other features; or it is unfit, and not forced.
        """
        found = await asyncio.to_thread(self._activate, model_id, force=force)
        await self.active.current()
        log.info("reward_model_activated", model=model_id)
        return found.card

    def _all(self) -> list[tuple[Card, bool]]:
        try:
            active = self._registry.active_id()
        except UnusableModel:
            active = None
        return [(card, card.id == active) for card in self._registry.cards()]

    def _activate(self, model_id: str, *, force: bool) -> Artefact:
        found = self._open(model_id)
        if (why := unfit(found.card)) and not force:
            raise Conflict(f"This reward model is not activated: {why}; `force=true` activates it all the same.")
        try:
            self._featurise(found)
            return self._registry.activate(model_id)
        except OSError as error:
            log.warning("reward_model_not_activated", model=model_id, error=type(error).__name__)
            raise Conflict("The server cannot write which reward model is active.") from None
        except LabsError as error:
            # The reason names folders of the server; it is the operator's.
            log.warning("reward_model_not_activated", model=model_id, error=type(error).__name__)
            raise Conflict("This reward model was made for another encoder or other features; train again.") from None

    def _open(self, model_id: str) -> Artefact:
        try:
            return self._registry.open(model_id)
        except UnusableModel:
            log.warning("reward_model_damaged", model=model_id)
            raise Conflict("This reward model is damaged.") from None
