"""A reward function (`trainer_client.rewards`) as a judge of whole conversations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from reward_server.judges.base import Case
from reward_server.judges.estimate import Estimate


class Result(Protocol):
    """The result of a reward function for a conversation."""

    reward: float


class Reward(Protocol):
    """The part of a reward function that is used here."""

    version: str

    def score_many(self, conversations: Sequence[Sequence[dict[str, Any]]]) -> Sequence[Result]:
        """Score conversations, in order."""
        ...


class RewardEstimates:
    """Gives a plug-in's reward function the conversations as messages: the agent is the assistant."""

    reads_record = False

    def __init__(self, reward: Reward) -> None:
        self.version = reward.version
        self._reward = reward

    def estimate(self, cases: Sequence[Case]) -> list[Estimate]:
        """One estimate per case; what the reward function raises is a failed judge."""
        results = self._reward.score_many([messages_of(case) for case in cases])
        return [Estimate(result.reward) for result in results]


def messages_of(case: Case) -> list[dict[str, Any]]:
    """The conversation of a case, without its tool calls that are not valid."""
    messages: list[dict[str, Any]] = []
    if case.transcript.opening is not None:
        messages.append({"role": "user", "content": case.transcript.opening})
    for turn in case.transcript.turns:
        calls = [{"name": use.tool_id, "input": dict(use.input)} for use in turn.uses if use.valid]
        messages.append({"role": "assistant", "content": turn.agent} | ({"tool_calls": calls} if calls else {}))
        if turn.persona is not None:
            messages.append({"role": "user", "content": turn.persona})
    return messages
