"""A wave's calls of the server: many episodes in one request, and one by one only those that failed there.

A key that allows 60 requests a minute is enough for a request a step, and not for a request a turn. What comes of an
episode does not depend on the others of its request: one that fails there is asked for again alone, as the client
retries any call, and so its error is its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from learner.retry import WAITED_FOR, OutageRetryPolicy
from trainer_client import AsyncLabsClient, LabsError
from trainer_client.wire import (
    MAX_BATCH_ITEMS,
    CreateEpisodeResponse,
    FailedTurn,
    Message,
    PlayedTurn,
    StartedEpisode,
    TurnResponse,
)
from trainer_client.wire.episodes import Split
from trainer_client.wire.reward import RewardConfig

AskedT = TypeVar("AskedT")
AnswerT = TypeVar("AnswerT")
Started = StartedEpisode | CreateEpisodeResponse
Answered = PlayedTurn | TurnResponse


@dataclass(frozen=True)
class EpisodeSpec:
    """An episode that is to begin. Its persona is the user, so the policy is the assistant."""

    collection: str
    scenario: str
    seed: int
    max_turns: int | None
    reward_config: RewardConfig | None
    split: Split | None = None


@dataclass(frozen=True)
class PolicyTurn:
    """A turn of the policy in an episode."""

    episode_id: str
    messages: Sequence[Message]
    """The whole conversation, which ends with the turn: sent again, it only gets the answer that was given."""
    reward_config: RewardConfig | None


class Wave:
    """Starts episodes and plays their turns; each gets its answer or its error."""

    def __init__(self, client: AsyncLabsClient, retry_policy: OutageRetryPolicy) -> None:
        self._client = client
        self._retry_policy = retry_policy

    async def start(self, wanted: Sequence[EpisodeSpec]) -> list[Started | LabsError]:
        """In the order of the episodes."""
        return await _in_batches(wanted, self._start_batch, self._start_one)

    async def play(self, said: Sequence[PolicyTurn]) -> list[Answered | LabsError]:
        """In the order of the turns, each of another episode."""
        return await _in_batches(said, self._play_batch, self._play_one)

    async def _start_batch(self, wanted: Sequence[EpisodeSpec]) -> Sequence[Started | None]:
        items = [
            {
                "collection_slug": each.collection,
                "scenario_slug": each.scenario,
                "config": {
                    "seed": each.seed,
                    "max_turns": each.max_turns,
                    "observation_role": "user",
                    "split": each.split,
                },
                "reward_config": each.reward_config,
            }
            for each in wanted
        ]
        return await self._retry_policy.ask(lambda key: self._client.start_episodes(items, idempotency_key=key))

    async def _start_one(self, wanted: EpisodeSpec) -> Started:
        return await self._retry_policy.ask(
            lambda key: self._client.create_episode(
                wanted.collection,
                wanted.scenario,
                seed=wanted.seed,
                max_turns=wanted.max_turns,
                observation_role="user",
                split=wanted.split,
                reward_config=wanted.reward_config,
                idempotency_key=key,
            )
        )

    async def _play_batch(self, said: Sequence[PolicyTurn]) -> Sequence[Answered | None]:
        # The persona's last line and the answer to it are enough: with its key the request may be sent again.
        items = [
            {
                "episode_id": each.episode_id,
                "messages": each.messages[-2:],
                "reward_config": each.reward_config,
            }
            for each in said
        ]
        found = await self._retry_policy.ask(lambda key: self._client.batch_turns(items, idempotency_key=key))
        return [None if isinstance(each, FailedTurn) else each for each in found]

    async def _play_one(self, said: PolicyTurn) -> Answered:
        return await self._retry_policy.ask(
            lambda key: self._client.turn(
                said.episode_id, said.messages, reward_config=said.reward_config, idempotency_key=key
            )
        )


async def _in_batches(
    asked: Sequence[AskedT],
    together: Callable[[Sequence[AskedT]], Awaitable[Sequence[AnswerT | None]]],
    alone: Callable[[AskedT], Awaitable[AnswerT]],
) -> list[AnswerT | LabsError]:
    """Send all in batches; `together` gives None for one that failed, or raises where all of them did."""

    async def one(each: AskedT) -> AnswerT | LabsError:
        try:
            return await alone(each)
        except LabsError as error:
            return error

    async def part(batch: Sequence[AskedT]) -> list[AnswerT | LabsError]:
        found: Sequence[AnswerT | None] = [None] * len(batch)
        if len(batch) > 1:
            try:
                found = await together(batch)
            except WAITED_FOR as error:  # time is up for all of them
                return [error] * len(batch)
            except LabsError:  # the fault of one of them, or of their number
                pass
        missing = [place for place, answer in enumerate(found) if answer is None]
        again = dict(zip(missing, await asyncio.gather(*(one(batch[place]) for place in missing)), strict=True))
        return [again[place] if answer is None else answer for place, answer in enumerate(found)]

    batches = [asked[start : start + MAX_BATCH_ITEMS] for start in range(0, len(asked), MAX_BATCH_ITEMS)]
    return [each for found in await asyncio.gather(*map(part, batches)) for each in found]
