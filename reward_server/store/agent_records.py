"""Records of the store of agents: who they are, and what the episodes they played came to."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from reward_server.store.records import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRow:
    """A policy that the server can talk to."""

    agent_id: str
    lab_id: str
    kind: str
    name: str
    settings: JsonObject = field(repr=False)
    """Where it is and how it is asked: never a secret."""
    sealed_key: str | None = field(repr=False)
    """The key of its endpoint, encrypted (`agents.sealing`)."""
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEpisodeRow:
    """An episode that an agent has played to its end, for one item of a job."""

    job_id: str
    item_index: int
    lab_id: str
    agent_id: str
    episode_id: str
    collection: str
    scenario: str
    seed: int
    reward: float
    scoring_version: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingRow:
    """The figures of an agent's episodes in one scenario under one scoring version.

    A seed that was played several times counts once, with the mean of its rewards.
    """

    agent_id: str
    scenario: str
    seeds: int
    episodes: int
    mean: float
    mean_square: float
    """Of the seeds' means."""
    passed: int
    """Seeds whose mean is at least what was asked for."""
