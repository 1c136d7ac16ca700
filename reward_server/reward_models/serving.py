"""The active reward model in service: a judge of whole conversations, exchanged while the server runs.

A judge is an immutable snapshot of one model; activating another makes a new judge, and whoever holds the old one goes
on with it to the end of a batch. Nothing is cached by conversation here, so nothing can be stale. What cannot be
estimated is a failure: no constant, no other encoder, no older model in its place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Protocol, runtime_checkable

import numpy as np

from personas.reading.matcher import Matcher
from reward_server.encoders.encoder import METHOD_MARK
from reward_server.errors import JudgeFailed, LabsError
from reward_server.judges.base import Case
from reward_server.judges.estimate import REWARD_MODEL, ConversationJudge, Estimate
from reward_server.logs.logger import get_logger
from reward_server.reward_models.artefact import Artefact
from reward_server.reward_models.conversation import Conversation
from reward_server.reward_models.earned import as_earned
from reward_server.reward_models.heads import Featuriser
from reward_server.reward_models.model import RewardModel, model_of
from reward_server.reward_models.recorded import conversation_of, scenario_text
from reward_server.reward_models.registry import Registry, Stamp

EARNED = "earned"
"""In a version: facts that the agent did not earn are not read."""
log = get_logger(__name__)

Featurise = Callable[[Artefact], Featuriser]
"""The featuriser a model needs (`featurisers`); raises where this server has another encoder or other features."""


@runtime_checkable
class PreparingFeaturiser(Protocol):
    """A featuriser that can be told early what it will be asked."""

    async def prepare(self, conversations: Sequence[Conversation]) -> None:
        """Have encoded what `features` will need."""


class LearnedJudge:
    """One reward model as a judge of conversations."""

    def __init__(
        self, model_id: str, model: RewardModel, featuriser: Featuriser, matcher: Matcher | None = None
    ) -> None:
        """Args: matcher: finds what was told and not earned (`earned`); without one, lines are read as they stand."""
        self._matcher = matcher
        self._id = model_id
        self._model = model
        self._featuriser = featuriser

    @property
    def name(self) -> str:
        """The name that composites use."""
        return REWARD_MODEL

    @property
    def version(self) -> str:
        """The model's id, a hash of all that decides its estimates, and the precision they are computed in."""
        method = self._featuriser.version.partition(METHOD_MARK)[2]
        earned = EARNED if self._matcher is not None else ""
        return "/".join(part for part in (self._id, earned, method) if part)

    @property
    def reads_record(self) -> bool:
        """True if what an agent earned is known by replaying the case."""
        return self._matcher is not None

    @property
    def states_uncertainty(self) -> bool:
        """True if its estimates come with a standard deviation; too little data leaves a model without."""
        return self._model.posterior is not None

    async def prepare(self, cases: Sequence[Case]) -> None:
        """Have the texts encoded together with those of all other callers."""
        if isinstance(self._featuriser, PreparingFeaturiser):
            await self._featuriser.prepare(
                [conversation_of(case.transcript, scenario_text(case.scenario.card)) for case in cases]
            )

    def estimate(self, cases: Sequence[Case]) -> Sequence[Estimate]:
        """One estimate per case, in order; each depends on its own case alone.

        Raises:
            JudgeFailed: features or values are no numbers.
        """
        read = [case.transcript for case in cases] if self._matcher is None else as_earned(cases, self._matcher)
        conversations = [
            conversation_of(transcript, scenario_text(case.scenario.card))
            for transcript, case in zip(read, cases, strict=True)
        ]
        features = self._featuriser.features(conversations)
        if features.shape != (len(cases), self._model.heads.width) or not np.isfinite(features).all():
            raise JudgeFailed
        found = self._model.predict(features)
        if not np.isfinite(found.values).all():
            raise JudgeFailed
        names = self._model.heads.names
        return [
            Estimate(
                value=float(row[0]),
                epistemic=None if found.epistemic is None else float(found.epistemic[index]),
                noise=None if found.noise is None else float(found.noise[index]),
                dimensions={name: float(value) for name, value in zip(names[1:], row[1:], strict=True)},
            )
            for index, row in enumerate(found.values)
        ]


class UnusableJudge:
    """Stands for an active model that cannot be loaded: asking it fails, until another model is activated."""

    def __init__(self, model_id: str) -> None:
        self._id = model_id

    @property
    def name(self) -> str:
        """The name that composites use."""
        return REWARD_MODEL

    @property
    def version(self) -> str:
        """Differs from that of the same model once it can be loaded."""
        return f"{self._id}/unusable"

    @property
    def states_uncertainty(self) -> bool:
        """It states nothing."""
        return False

    def estimate(self, cases: Sequence[Case]) -> Sequence[Estimate]:
        """Always `JudgeFailed`."""
        raise JudgeFailed


class ActiveRewardModel:
    """Follows `active.json`: one `stat` tells whether the judge at hand is still the right one."""

    def __init__(self, registry: Registry, featurise: Featurise, matcher: Matcher | None = None) -> None:
        self._matcher = matcher
        self._registry = registry
        self._featurise = featurise
        self._lock = Lock()
        self._seen: tuple[Stamp, ConversationJudge | None] = (None, None)

    @property
    def is_stale(self) -> bool:
        """True if another model is active than the one at hand; costs one `stat`."""
        return self._registry.stamp() != self._seen[0]

    @property
    def at_hand(self) -> ConversationJudge | None:
        """The judge that was active when it was last looked, without looking; never blocks."""
        return self._seen[1]

    def judge(self) -> ConversationJudge | None:
        """The judge of the active model, loaded if need be (blocking); None where no model is active."""
        if self.is_stale:
            with self._lock:
                stamp = self._registry.stamp()
                if stamp != self._seen[0]:
                    # The stamp of before the reading: what is replaced meanwhile is read again next time.
                    self._seen = (stamp, self._load())
        return self._seen[1]

    async def current(self) -> ConversationJudge | None:
        """The same from a coroutine: loading happens in a thread."""
        return await asyncio.to_thread(self.judge) if self.is_stale else self._seen[1]

    def read(self, model_id: str) -> LearnedJudge:
        """The judge of a model, read anew (blocking); a `LabsError` says why it cannot be used."""
        artefact = self._registry.open(model_id)
        return LearnedJudge(model_id, model_of(artefact), self._featurise(artefact), self._matcher)

    def _load(self) -> ConversationJudge | None:
        model_id = "unknown"
        try:
            found = self._registry.active_id()
            if found is None:
                return None
            model_id = found
            return self.read(model_id)
        except LabsError as error:
            log.error("reward_model_unusable", model=model_id, code=error.code)  # noqa: TRY400
            return UnusableJudge(model_id)
