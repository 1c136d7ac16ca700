"""Rewards that a Labs server computes: an episode's own, a rubric's, a learned model's, and RULER for groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trainer_client.batch import FailedItem, ScoredItem
from trainer_client.client import LabsClient
from trainer_client.errors import LabsError
from trainer_client.rewards.base import (
    NO_CONTEXT,
    Conversation,
    RewardContext,
    RewardError,
    RewardFunction,
    RewardResult,
)
from trainer_client.wire import BatchItem, Message
from trainer_client.wire.reward import Composite, CompositePart, RewardConfig


class ServerReward(RewardFunction):
    """The reward that the server gave the conversation while it played it; fails where none did."""

    name = "server"

    def score(self, messages: Conversation, context: RewardContext = NO_CONTEXT) -> RewardResult:
        """The server's reward of the conversation so far."""
        if context.server_reward is None:
            raise RewardError("no server played this conversation; use RubricReward to have one score it")
        return RewardResult(context.server_reward, context.server_scores)


class RubricReward(RewardFunction):
    """The reward of a scenario's rubric, from `/evaluate`: what an episode of the scenario would have earned."""

    name = "rubric"

    def __init__(
        self, client: LabsClient, collection: str, scenario: str, *, reward_config: RewardConfig | None = None
    ) -> None:
        self._client, self._place, self._config = client, (collection, scenario), reward_config

    def score(self, messages: Conversation, context: RewardContext = NO_CONTEXT) -> RewardResult:
        """Score one conversation on the server."""
        try:
            answer = self._client.evaluate(*self._place, _plain(messages), reward_config=self._config)
        except LabsError as error:
            raise RewardError(f"{error.code}: {error.message}") from error
        return RewardResult(answer.reward, answer.scores or {})

    def score_many(
        self, conversations: Sequence[Conversation], contexts: Sequence[RewardContext] | None = None
    ) -> list[RewardResult]:
        """Score conversations in as few requests as the server takes."""
        collection, scenario = self._place
        items = [
            BatchItem(
                id=str(number),
                collection_slug=collection,
                scenario_slug=scenario,
                messages=[Message.model_validate(message) for message in _plain(messages)],
                reward_config=self._config,
            )
            for number, messages in enumerate(conversations)
        ]
        try:
            outcomes = list(self._client.batch_evaluate(items))
        except LabsError as error:
            raise RewardError(f"{error.code}: {error.message}") from error
        return [_result(outcome) for outcome in outcomes]


class LearnedReward(RubricReward):
    """The estimate of the server's active reward model (`labs reward-model`), in a scenario.

    It is as good as the model's figures on held-out data, which `labs reward-model show` prints.
    """

    name = "reward_model"

    def __init__(self, client: LabsClient, collection: str, scenario: str) -> None:
        part = CompositePart(judge="reward_model")
        config = RewardConfig(composite=Composite(combine="weighted_sum", parts=[part]))
        super().__init__(client, collection, scenario, reward_config=config)


class RULER:
    """Relative scores of the conversations of a group, from `/rank`: a judge of the server reads them side by side.

    RULER is the listwise judge of the ART project. A score compares the members of one group and means nothing
    outside it.
    """

    name = "ruler"

    def __init__(self, client: LabsClient, collection: str, scenario: str) -> None:
        self._client, self._place = client, (collection, scenario)

    def score_group(self, conversations: Sequence[Conversation]) -> list[RewardResult]:
        """Score 2 to 64 conversations against each other, in order.

        Raises:
            RewardError: the server cannot rank them.
        """
        responses: Mapping[str, Sequence[dict[str, object]]] = {
            f"member-{number}": _plain(messages) for number, messages in enumerate(conversations)
        }
        try:
            answer = self._client.rank(*self._place, responses)
        except LabsError as error:
            raise RewardError(f"{error.code}: {error.message}") from error
        scores = {ranked.id: ranked.score for ranked in answer.results}
        return [RewardResult(scores[name]) for name in responses]


def _result(outcome: ScoredItem | FailedItem) -> RewardResult:
    if isinstance(outcome, FailedItem):
        raise RewardError(f"{outcome.code}: {outcome.message}")
    return RewardResult(outcome.reward, outcome.scores or {})


def _plain(messages: Conversation) -> list[dict[str, object]]:
    """Without system messages, which the server does not score."""
    return [dict(message) for message in messages if message.get("role") != "system"]
