"""Preference pairs, from what a lab has in the store.

Three sources: what people said, what `/compare` found, and groups of episodes that share scenario, seed and persona.
In a group the best goes with the worst, the second best with the second worst, and so on: each episode is in one pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import groupby
from typing import Any

from reward_server.clock import to_iso
from reward_server.episodes.machine import agent_role, log_of
from reward_server.preferences.dialogue import Message, NotAPair, split
from reward_server.store.records import ComparisonRow, EpisodeRow, FinishedEpisode, PreferenceRow, TurnRow

JsonObject = dict[str, Any]


class Source(StrEnum):
    """The source of a preference; people come first, because they overrule judges."""

    LABEL = "label"
    COMPARE = "compare"
    EPISODES = "episodes"


@dataclass(frozen=True)
class PreferencePair:
    """A better and a worse way to go on from a prompt, and who says so."""

    source: Source
    prompt: list[Message] = field(repr=False)
    chosen: list[Message] = field(repr=False)
    rejected: list[Message] = field(repr=False)
    margin: float | None
    """How much better; None where a person did not say."""
    provenance: JsonObject


def of_comparison(row: ComparisonRow) -> PreferencePair:
    """The pair of a comparison that `/compare` made.

    Raises:
        NotAPair: `tie`, or as `dialogue.split` says.
    """
    where = {"comparison_id": row.comparison_id, "judge": judges_of(row.verdicts_a)}
    where["scoring_version"] = row.scoring_version
    return _pair(Source.COMPARE, row, row.margin, where)


def of_label(row: PreferenceRow) -> PreferencePair:
    """The pair of a label; raises as `of_comparison`."""
    where = {
        "preference_id": row.preference_id,
        "comparison_id": row.comparison_id,
        "judge": "human",
        "labeller": row.labeller,
        "scoring_version": row.scoring_version,
    }
    return _pair(Source.LABEL, row, row.margin, where)


def _pair(
    source: Source, row: ComparisonRow | PreferenceRow, margin: float | None, where: JsonObject
) -> PreferencePair:
    if row.winner == "tie":
        raise NotAPair("tie")
    found = split(row.messages_a, row.messages_b, row.agent_role)
    rewards = {"a": row.reward_a, "b": row.reward_b}
    sides = {"a": found.a, "b": found.b}
    loser = "b" if row.winner == "a" else "a"
    provenance = {
        "source": source.value,
        "collection_slug": row.collection,
        "scenario_slug": row.scenario,
        **where,
        "reward_chosen": rewards[row.winner],
        "reward_rejected": rewards[loser],
        "created_at": to_iso(row.created_at),
    }
    return PreferencePair(source, found.prompt, sides[row.winner], sides[loser], margin, _said(provenance))


def judges_of(verdicts: Sequence[Mapping[str, Any]]) -> str:
    """The judges that decided: those of the verdicts and the parts of a composite, in the order they come in."""
    names = (verdict.get("judge") or verdict.get("part") for verdict in verdicts)
    return "+".join(dict.fromkeys(name for name in names if name))


def _said(provenance: JsonObject) -> JsonObject:
    return {name: value for name, value in provenance.items() if value is not None}


# --- episodes -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlayedEpisode:
    """An episode with its turns."""

    episode: EpisodeRow
    turns: Sequence[TurnRow]

    @property
    def scoring_version(self) -> str | None:
        """The version that made its final reward; None for episodes from before turns said so."""
        version: str | None = self.turns[-1].answer.get("scoring_version")
        return version


def couples(episodes: Sequence[FinishedEpisode]) -> Iterator[tuple[FinishedEpisode, FinishedEpisode]]:
    """(better, worse) of each group; the episodes of a group stand together. Equal rewards make no couple."""
    for _, group in groupby(episodes, key=lambda each: (each.collection, each.scenario, each.seed, each.persona_slug)):
        best_first = sorted(group, key=lambda each: (-each.reward, each.episode_id))
        for better, worse in zip(best_first, reversed(best_first), strict=True):
            if better.reward <= worse.reward:
                break
            if better.reward_config == worse.reward_config:
                yield better, worse


def of_episodes(better: PlayedEpisode, worse: PlayedEpisode, created_at: datetime) -> PreferencePair:
    """The pair of two episodes of a group.

    Raises:
        NotAPair: `versions_differ`, or as `dialogue.split` says.
    """
    if better.scoring_version != worse.scoring_version:
        raise NotAPair("versions_differ")
    chosen, rejected = better.episode, worse.episode
    # The same seed, so the same opening; each log has its roles, which may differ.
    found = split(_messages(better), _messages(worse), "assistant")
    rewards = better.turns[-1].reward, worse.turns[-1].reward
    provenance = {
        "source": Source.EPISODES.value,
        "collection_slug": chosen.collection,
        "scenario_slug": chosen.scenario,
        "episode_id_chosen": chosen.episode_id,
        "episode_id_rejected": rejected.episode_id,
        "seed": chosen.seed,
        "persona_slug": chosen.persona_slug,
        "judge": "rubric",
        "scoring_version": better.scoring_version,
        "reward_chosen": rewards[0],
        "reward_rejected": rewards[1],
        "created_at": to_iso(created_at),
    }
    margin = round(rewards[0] - rewards[1], 4)
    return PreferencePair(Source.EPISODES, found.prompt, found.a, found.b, margin, _said(provenance))


def _messages(played: PlayedEpisode) -> list[Message]:
    agent = agent_role(played.episode.observation_role)
    return [
        {
            "role": "assistant" if line.role == agent else "user",
            "content": line.content,
            "tool_calls": list(line.tool_calls or ()),
        }
        for line in log_of(played.episode, played.turns)
    ]
