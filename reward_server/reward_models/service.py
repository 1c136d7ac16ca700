"""Reward models for the API: lists them, and lets one serve. All that reads a disk happens in a thread.

Models in the folder itself are shared by all labs; a lab may have models of its own beside them, which no other lab
sees. What serves a lab is the model that is active among its own, else the one that is active for all. Whose request is
being worked on is asked from whoever made this service.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from personas.reading.matcher import Matcher
from reward_server.errors import Conflict, LabsError, RewardModelNotFound, ScopeMissing, UnusableModel
from reward_server.judges.estimate import ConversationJudge
from reward_server.logs.logger import get_logger
from reward_server.reward_models import artefact
from reward_server.reward_models.artefact import Artefact, Card
from reward_server.reward_models.fitness import unfit
from reward_server.reward_models.registry import Registry
from reward_server.reward_models.serving import ActiveRewardModel, Featurise
from scenarios.spelling import OF_IDS, meant

log = get_logger(__name__)


def nobody() -> str:
    """Of a process that works for no lab: it sees what all share."""
    return ""


class RewardModelService:
    """The models of one server, and which of them serve."""

    def __init__(
        self,
        registry: Registry,
        featurise: Featurise,
        matcher: Matcher | None = None,
        whose: Callable[[], str] = nobody,
    ) -> None:
        self._registry = registry
        self._featurise = featurise
        self._matcher = matcher
        self._whose = whose
        self.active = ActiveRewardModel(registry, featurise, matcher)
        """For labs without one of their own."""
        self._of_labs: dict[str, ActiveRewardModel] = {}

    @property
    def at_hand(self) -> ConversationJudge | None:
        """The judge of the lab that is being worked for, as of `current`; never blocks."""
        own = self._of_labs.get(self._whose())
        found = None if own is None else own.at_hand
        return self.active.at_hand if found is None else found

    async def current(self) -> ConversationJudge | None:
        """The same, looked up: what was activated elsewhere serves from here on."""
        await self.active.current()
        lab_id = self._whose()
        own = self._of_labs.get(lab_id) or self.own_of(lab_id)
        if own is not None:
            await own.current()
        return self.at_hand

    def own_of(self, lab_id: str) -> ActiveRewardModel | None:
        """The active one among the lab's own models; None for what is no lab."""
        own = self._registry.of(lab_id)
        if own is None:
            return None
        return self._of_labs.setdefault(lab_id, ActiveRewardModel(own, self._featurise, self._matcher))

    async def all(self) -> list[tuple[Card, bool]]:
        """The cards that the lab may see, newest first, and whether the model serves it."""
        return await asyncio.to_thread(self._all)

    async def activate(self, model_id: str, *, force: bool = False, shared: bool = True) -> Card:
        """Verify a model and let it serve; the next request finds it loaded.

        Args:
            force: even one that is unfit.
            shared: whether the caller may let a model serve that all labs share.

        A lab's own model serves that lab alone. One that all share serves every lab that has none of its own active,
        and from now on the lab that asks, too.

        Raises:
            RewardModelNotFound: there is no such model, or it is another lab's.
            ScopeMissing: it is all labs', and the caller may not.
            Conflict: it is damaged, or made for another encoder or other features; or it is unfit, and not forced.
        """
        found = await asyncio.to_thread(self._activate, model_id, force=force, shared=shared)
        await self.current()
        log.info("reward_model_activated", model=model_id, lab=self._whose())
        return found.card

    async def deactivate(self, model_id: str) -> Card:
        """Let a model of the lab's own serve no longer; `RewardModelNotFound` where none of that id does."""
        own = self._own()
        card = await asyncio.to_thread(_deactivated, own, model_id)
        await self.current()
        log.info("reward_model_deactivated", model=model_id, lab=self._whose())
        return card

    async def delete(self, model_id: str) -> Card:
        """Delete a model of the lab's own.

        Raises:
            RewardModelNotFound: the lab has none of that id.
            Conflict: it serves.
        """
        own = self._own()
        if own is None or not own.has(model_id):
            raise RewardModelNotFound
        if _active_id(own) == model_id:
            raise Conflict("This reward model serves: deactivate it first.")
        try:
            return await asyncio.to_thread(own.remove, model_id)
        except OSError:
            raise Conflict("The server cannot delete this reward model.") from None

    def _own(self) -> Registry | None:
        """The models of the lab that is being worked for."""
        return self._registry.of(self._whose())

    def _all(self) -> list[tuple[Card, bool]]:
        own = self._own()
        registries = [self._registry, *([] if own is None else [own])]
        active = next((found for each in reversed(registries) if (found := _active_id(each)) is not None), None)
        cards = {card.id: card for each in registries for card in each.cards()}
        newest_first = sorted(cards.values(), key=lambda card: (card.created, card.id), reverse=True)
        return [(card, card.id == active) for card in newest_first]

    def _activate(self, model_id: str, *, force: bool, shared: bool) -> Artefact:
        own = self._own()
        registry = own if own is not None and own.has(model_id) else self._registry
        if registry is not own and not shared and registry.has(model_id):
            raise ScopeMissing(scopes=("operate",))
        found = self._open(registry, model_id)
        if (why := unfit(found.card)) and not force:
            raise Conflict(f"This reward model is not activated: {why}; `force=true` activates it all the same.")
        try:
            self._featurise(found)
            activated = registry.activate(model_id)
            if own is not None and registry is not own:
                own.deactivate()
        except OSError as error:
            log.warning("reward_model_not_activated", model=model_id, error=type(error).__name__)
            raise Conflict("The server cannot write which reward model is active.") from None
        except LabsError as error:
            # The reason names folders of the server; it is the operator's.
            log.warning("reward_model_not_activated", model=model_id, error=type(error).__name__)
            raise Conflict("This reward model was made for another encoder or other features; train again.") from None
        return activated

    def _open(self, registry: Registry, model_id: str) -> Artefact:
        try:
            return registry.open(model_id)
        except RewardModelNotFound:
            known = (card.id for card, _ in self._all())
            raise RewardModelNotFound(RewardModelNotFound.default_message + meant(model_id, known, OF_IDS)) from None
        except UnusableModel:
            log.warning("reward_model_damaged", model=model_id)
            raise Conflict("This reward model is damaged.") from None


def _deactivated(own: Registry | None, model_id: str) -> Card:
    if own is None or not own.has(model_id) or _active_id(own) != model_id:
        raise RewardModelNotFound("This lab has no active reward model of this id.")
    own.deactivate()
    return artefact.read_card(own.folder / model_id)


def _active_id(registry: Registry) -> str | None:
    try:
        return registry.active_id()
    except UnusableModel:
        return None
