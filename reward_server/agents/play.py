"""Plays an episode with an agent to its end, through the service that answers `/episodes`: rewards are the same.

An episode that was begun goes on where it is: its name finds it again for as long as it is alive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reward_server.access import scenario_for
from reward_server.agents.service import AgentService, said
from reward_server.auth.lab import Lab
from reward_server.episodes.service import EpisodeService
from reward_server.errors import HistoryMismatch, NothingToScore, TurnInProgress, Unavailable
from reward_server.limits.usage import ReadingCounter
from reward_server.store.agent_records import AgentRow
from reward_server.transcripts.weight import weight
from scenarios.library import Catalog
from trainer_client.wire import AgentItem, CreateEpisodeRequest, EpisodeConfig, TurnRequest


@dataclass(frozen=True)
class FinishedEpisodePlay:
    """An episode that is over."""

    episode_id: str
    reward: float
    scoring_version: str
    turns: int
    terminal_reason: str


class AgentPlayer:
    """Lets agents play."""

    def __init__(self, agents: AgentService, episodes: EpisodeService, catalog: Catalog) -> None:
        self.agents = agents
        self._episodes = episodes
        self._catalog = catalog

    async def play(
        self, lab: Lab, agent: AgentRow, item: AgentItem, name: str, count: ReadingCounter
    ) -> FinishedEpisodePlay:
        """Play; `name` is the episode's among the lab's. Each turn is counted when it is played, as one of a door is.

        Raises:
            AgentFailed: the agent gave no turn; what was played so far stays, and the same call goes on with it.
            LabsError: as POST /episodes and /episodes/{id}/turns.
        """
        scenario = scenario_for(lab, self._catalog, item.collection_slug, item.scenario_slug)
        episode_id = await self._begun(lab, agent, item, name)
        while True:
            episode = await self._episodes.get(lab, episode_id)
            if episode["status"] != "active":
                return _played(episode)
            turn = await self.agents.turn(agent, episode["messages"], scenario)
            # With the whole log in front, it cannot be heard as an answer to something that it has not seen.
            request = TurnRequest.model_validate({"messages": [*episode["messages"], said(turn.message)]})
            try:
                await self._episodes.turn(lab, episode_id, request, None)
            except (TurnInProgress, HistoryMismatch):
                raise Unavailable("Another turn of this episode was played in the meantime.") from None
            count(weight(request.messages[-1]), turns=1)

    async def _begun(self, lab: Lab, agent: AgentRow, item: AgentItem, name: str) -> str:
        config = EpisodeConfig(seed=item.seed, observation_role="user", metadata={"agent_id": agent.agent_id})
        request = CreateEpisodeRequest(
            collection_slug=item.collection_slug, scenario_slug=item.scenario_slug, config=config
        )
        created = await self._episodes.create(lab, request, name)
        return str(created["episode_id"])


def _played(episode: dict[str, Any]) -> FinishedEpisodePlay:
    if not episode["rewards"]:
        raise NothingToScore("The episode was ended before the agent had said anything.")
    return FinishedEpisodePlay(
        episode_id=episode["episode_id"],
        reward=episode["rewards"][-1],
        scoring_version=episode["scoring_version"],
        turns=episode["turn"],
        terminal_reason=episode["terminal_reason"],
    )
