"""The calls that score finished conversations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from trainer_client.calls import Call, MessageLike, RewardConfigLike, checked, conversation, post, segment
from trainer_client.methods import method
from trainer_client.wire import (
    CompareRequest,
    CompareResponse,
    EvaluateRequest,
    EvaluateResponse,
    RankRequest,
    RankResponse,
    Role,
    StoredEvaluation,
)


class ScoringCalls:
    """Scores of finished conversations."""

    @method
    def evaluate(
        self,
        collection_slug: str | None = None,
        scenario_slug: str | None = None,
        messages: Sequence[MessageLike] = (),
        *,
        rubric: Mapping[str, object] | None = None,
        agent_role: Role = "assistant",
        reward_config: RewardConfigLike | None = None,
        normalization_key: str | None = None,
        normalization_windows: Sequence[str] | None = None,
        idempotency_key: str | None = None,
    ) -> Call[EvaluateResponse]:
        """Score one finished conversation, by a scenario or by a rubric: `evaluate(messages=..., rubric=...)`."""
        request = checked(
            EvaluateRequest,
            collection_slug=collection_slug,
            scenario_slug=scenario_slug,
            rubric=rubric,
            messages=conversation(messages),
            agent_role=agent_role,
            reward_config=reward_config,
            normalization_key=normalization_key,
            normalization_windows=None if normalization_windows is None else list(normalization_windows),
        )
        return post("/evaluate", request, EvaluateResponse, idempotency_key)

    @method
    def get_evaluation(self, evaluation_id: str) -> Call[StoredEvaluation]:
        """An evaluation as it was answered, whichever door it came through."""
        return Call("GET", f"/evaluations/{segment(evaluation_id)}", StoredEvaluation)

    @method
    def compare(
        self,
        collection_slug: str | None = None,
        scenario_slug: str | None = None,
        messages_a: Sequence[MessageLike] = (),
        messages_b: Sequence[MessageLike] = (),
        *,
        rubric: Mapping[str, object] | None = None,
        agent_role: Role = "assistant",
        reward_config: RewardConfigLike | None = None,
        idempotency_key: str | None = None,
    ) -> Call[CompareResponse]:
        """Compare two conversations: which one is better."""
        request = checked(
            CompareRequest,
            collection_slug=collection_slug,
            scenario_slug=scenario_slug,
            rubric=rubric,
            response_a={"messages": conversation(messages_a)},
            response_b={"messages": conversation(messages_b)},
            agent_role=agent_role,
            reward_config=reward_config,
        )
        return post("/compare", request, CompareResponse, idempotency_key)

    @method
    def rank(
        self,
        collection_slug: str | None = None,
        scenario_slug: str | None = None,
        responses: Mapping[str, Sequence[MessageLike]] = MappingProxyType({}),
        *,
        rubric: Mapping[str, object] | None = None,
        agent_role: Role = "assistant",
        reward_config: RewardConfigLike | None = None,
        idempotency_key: str | None = None,
    ) -> Call[RankResponse]:
        """Rank 2 to 64 conversations, by id; the scores mean nothing outside the group."""
        request = checked(
            RankRequest,
            collection_slug=collection_slug,
            scenario_slug=scenario_slug,
            rubric=rubric,
            responses=[{"id": name, "messages": conversation(messages)} for name, messages in responses.items()],
            agent_role=agent_role,
            reward_config=reward_config,
        )
        return post("/rank", request, RankResponse, idempotency_key)
