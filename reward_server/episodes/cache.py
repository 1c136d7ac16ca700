"""Episodes in play: kept in memory as their last turn left them, so that the next turn reads nothing from the database.

Only where the server owns its database (an SQLite file), and only for turns that go on: what was answered before is
always read, so answers are not kept here. A copy may be out of date all the same: a command beside the server may have
deleted the episode, or a commit that failed was done after all. That does no harm. An active episode at a given turn
is always the same, and a turn is stored only where the episode still is active and at the turn that it was played
from (`store.steps`); whoever finds that it is not forgets the copy, and plays from what the database says.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from personas.text.memory import Memory
from reward_server.store.records import EpisodeRow, EpisodeStatus, TurnRow

MOST_EPISODES, MOST_BYTES = 4096, 32_000_000
"""What is kept at most; the episode that has rested longest goes first."""
EPISODE_BYTES = 7_000
TURN_BYTES = 900
"""What an episode, and a turn, takes beside what labs wrote, about."""
JSON_TIMES = 12
"""A value takes at most about so many times the length of its text: a list of small objects does."""

_Slot = tuple[str, str]


@dataclass(frozen=True, slots=True)
class LoadedEpisode:
    """An episode and its turns."""

    row: EpisodeRow
    turns: Sequence[TurnRow]

    def with_turn(self, after: EpisodeRow, turn: TurnRow) -> LoadedEpisode:
        """The same after one more turn."""
        return LoadedEpisode(after, (*self.turns, turn))


class EpisodeCache:
    """The episodes of all labs that are kept."""

    def __init__(self, *, kept: bool) -> None:
        """`kept`: whether any are; else every turn is played from what the database says."""
        self._kept = kept
        self._memory: Memory[_Slot, LoadedEpisode] = Memory(MOST_EPISODES, size_bytes=MOST_BYTES, cost=_bytes)

    @property
    def held_bytes(self) -> int:
        """The size of what is kept, about."""
        return self._memory.held_bytes

    def find(self, lab_id: str, episode_id: str) -> LoadedEpisode | None:
        """The lab's episode without its answers, if it is kept."""
        return self._memory.recall([(lab_id, episode_id)]).get((lab_id, episode_id))

    def keep(self, loaded: LoadedEpisode) -> None:
        """Remember an episode as it has just been stored; one that is over is not needed any more."""
        row = loaded.row
        if not self._kept:
            return
        if row.status is EpisodeStatus.ACTIVE:
            cached = LoadedEpisode(row, tuple(map(_without_answer, loaded.turns)))
            self._memory.keep({(row.lab_id, row.episode_id): cached})
        else:
            self.forget(row.lab_id, row.episode_id)

    def forget(self, lab_id: str, episode_id: str) -> bool:
        """Forget an episode; return whether it was kept."""
        return self._memory.forget([(lab_id, episode_id)]) > 0

    def forget_lab(self, lab_id: str) -> None:
        """Forget the episodes of a lab whose data was deleted."""
        self._memory.forget([slot for slot in self._memory.known() if slot[0] == lab_id])


def _without_answer(turn: TurnRow) -> TurnRow:
    return replace(turn, answer={}) if turn.answer else turn


def _bytes(_slot: _Slot, loaded: LoadedEpisode) -> int:
    row = loaded.row
    written = sum(JSON_TIMES * len(str(value)) for value in (row.metadata, row.reward_config) if value)
    lines = sum(sys.getsizeof(turn.agent_content) + sys.getsizeof(turn.observation) for turn in loaded.turns)
    calls = sum(JSON_TIMES * len(str(turn.tool_calls)) for turn in loaded.turns if turn.tool_calls)
    return EPISODE_BYTES + sys.getsizeof(row.opening) + written + TURN_BYTES * len(loaded.turns) + lines + calls
