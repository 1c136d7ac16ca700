"""The calls that play episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainer_client.calls import (
    Call,
    EpisodeLike,
    MessageLike,
    RewardConfigLike,
    checked,
    conversation,
    post,
    query_of,
    segment,
)
from trainer_client.methods import method, pages_of, part_of
from trainer_client.wire import (
    BatchEpisodesRequest,
    BatchEpisodesResponse,
    CreateEpisodeRequest,
    CreateEpisodeResponse,
    EpisodeList,
    EpisodeResponse,
    Role,
    StartedEpisode,
    TurnRequest,
    TurnResponse,
)
from trainer_client.wire.episodes import Split


def _started(answer: BatchEpisodesResponse) -> list[StartedEpisode]:
    return answer.episodes


class PlayCalls:
    """One episode from its beginning to its end; over a socket, too."""

    @method
    def create_episode(
        self,
        collection_slug: str,
        scenario_slug: str,
        *,
        seed: int | None = None,
        max_turns: int | None = None,
        observation_role: Role | None = None,
        persona: str | None = None,
        split: Split | None = None,
        metadata: Mapping[str, Any] | None = None,
        score_turns: bool = True,
        reward_config: RewardConfigLike | None = None,
        idempotency_key: str | None = None,
    ) -> Call[CreateEpisodeResponse]:
        """Start an episode."""
        request = checked(
            CreateEpisodeRequest,
            collection_slug=collection_slug,
            scenario_slug=scenario_slug,
            score_turns=score_turns,
            config=_config(seed, max_turns, observation_role, persona, split, metadata),
            reward_config=reward_config,
        )
        return post("/episodes", request, CreateEpisodeResponse, idempotency_key, {"op": "create"})

    @method
    def turn(
        self,
        episode_id: str,
        messages: str | MessageLike | Sequence[MessageLike],
        *,
        reward_config: RewardConfigLike | None = None,
        terminate: bool = False,
        idempotency_key: str | None = None,
    ) -> Call[TurnResponse]:
        """Say something in an episode and get the persona's answer."""
        request = checked(
            TurnRequest, messages=conversation(messages), reward_config=reward_config, terminate=terminate
        )
        path = f"/episodes/{segment(episode_id)}/turns"
        return post(path, request, TurnResponse, idempotency_key, {"op": "turn", "episode_id": episode_id})

    @method
    def delete_episode(self, episode_id: str) -> Call[EpisodeResponse]:
        """End an episode."""
        return Call(
            "DELETE",
            f"/episodes/{segment(episode_id)}",
            EpisodeResponse,
            operation={"op": "close", "episode_id": episode_id},
        )


class EpisodeCalls(PlayCalls):
    """Episodes, one or many in a request."""

    @method
    def get_episode(self, episode_id: str) -> Call[EpisodeResponse]:
        """An episode and its public transcript."""
        return Call("GET", f"/episodes/{segment(episode_id)}", EpisodeResponse)

    @pages_of(EpisodeResponse)
    def list_episodes(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        collection_slug: str | None = None,
        scenario_slug: str | None = None,
        status: str | None = None,
    ) -> Call[EpisodeList]:
        """This lab's episodes, newest first: all of them to go over, or page by page of at most `limit`."""
        query = query_of(
            limit=limit, cursor=cursor, collection_slug=collection_slug, scenario_slug=scenario_slug, status=status
        )
        return Call("GET", "/episodes", EpisodeList, query=query)

    @part_of(_started)
    def batch_episodes(
        self,
        collection_slug: str,
        scenario_slug: str,
        count: int,
        *,
        seed: int | None = None,
        max_turns: int | None = None,
        observation_role: Role | None = None,
        persona: str | None = None,
        split: Split | None = None,
        metadata: Mapping[str, Any] | None = None,
        score_turns: bool = True,
        reward_config: RewardConfigLike | None = None,
        idempotency_key: str | None = None,
    ) -> Call[BatchEpisodesResponse]:
        """Start a group of up to 100 episodes that share persona and seed: all of them, or an error."""
        request = checked(
            BatchEpisodesRequest,
            collection_slug=collection_slug,
            scenario_slug=scenario_slug,
            count=count,
            score_turns=score_turns,
            config=_config(seed, max_turns, observation_role, persona, split, metadata),
            reward_config=reward_config,
        )
        return post("/batch/episodes", request, BatchEpisodesResponse, idempotency_key)

    @part_of(_started)
    def start_episodes(
        self, items: Sequence[EpisodeLike], idempotency_key: str | None = None
    ) -> Call[BatchEpisodesResponse]:
        """Start up to 100 episodes `{"collection_slug", "scenario_slug", "config", ...}` that differ, in their order.

        All of them are started, or an error is raised.
        """
        return post(
            "/batch/episodes", checked(BatchEpisodesRequest, items=list(items)), BatchEpisodesResponse, idempotency_key
        )


def _config(  # noqa: PLR0917 (its fields)
    seed: int | None,
    max_turns: int | None,
    observation_role: Role | None,
    persona: str | None,
    split: Split | None,
    metadata: Mapping[str, Any] | None,
) -> dict[str, Any] | None:
    options = {
        "seed": seed,
        "max_turns": max_turns,
        "observation_role": observation_role,
        "persona_slug": persona,
        "split": split,
        "metadata": None if metadata is None else dict(metadata),
    }
    return {name: value for name, value in options.items() if value is not None} or None
