"""Agreement of rewards with what people said of the same comparisons; the figures of `labs judges agree`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from reward_server.preferences.figures import MIN_ROWS, WINNERS, of_people, winners_named
from reward_server.reward_models.reliability import BINS, Bin, Floats, equal_mass_bins
from reward_server.store.records import PreferenceRow

LEAST_IN_A_BIN = 10
_LEVELS = ("b", "tie", "a")


def agreement(rows: Sequence[PreferenceRow]) -> dict[str, Any]:
    """Of labels on comparisons of the newest scoring version among them; `rows` are the newest first.

    Fewer than five labels give no figures. Rewards of two versions do not mix.
    """
    version, used = _used(rows)
    found: dict[str, Any] = {"labels": len(used), "left_out": len(rows) - len(used)}
    if version is None:
        return found
    rewards = np.array([float(reward or 0.0) for row in used for reward in (row.reward_a, row.reward_b)])
    figures = of_people(
        [WINNERS[row.winner] for row in used],
        [row.comparison_id or row.preference_id for row in used],
        rewards,
        _of_several(rows),
    )
    for figure in figures.values():
        if isinstance(figure, dict):
            figure.pop("is_constant", None)
    return found | {"scoring_version": version, **figures}


def by_margin(rows: Sequence[PreferenceRow]) -> tuple[Bin, ...]:
    """How often people prefer the side with the higher reward, by how much higher it is, from the closest pairs on.

    Of the same labels as `agreement`, but for ties of people. Equal rewards name no side: they are half right.
    """
    decided = [row for row in _used(rows)[1] if row.winner != "tie"]
    if len(decided) < MIN_ROWS:
        return ()
    margins = np.array([float(row.reward_a or 0.0) - float(row.reward_b or 0.0) for row in decided])
    winners = np.array([WINNERS[row.winner] for row in decided])
    right = 1.0 - np.abs(winners_named(margins) - winners)
    return equal_mass_bins(np.abs(margins), right, bins=max(2, min(BINS, len(decided) // LEAST_IN_A_BIN)))


def _used(rows: Sequence[PreferenceRow]) -> tuple[str | None, list[PreferenceRow]]:
    """The newest scoring version, and the labels under it that have both rewards."""
    version = next((row.scoring_version for row in rows if row.reward_a is not None), None)
    return version, [row for row in rows if row.scoring_version == version and None not in (row.reward_a, row.reward_b)]


def _of_several(rows: Sequence[PreferenceRow]) -> Floats:
    """The labels of each comparison that several spoke of, (comparisons, 3); of each person the newest one."""
    said: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for row in rows:
        if row.comparison_id is not None and row.labeller is not None:
            said[row.comparison_id].setdefault(row.labeller, row.winner)
    several = [list(each.values()) for _, each in sorted(said.items()) if len(each) > 1]
    counts = [[each.count(level) for level in _LEVELS] for each in several]
    return np.array(counts, dtype=np.float64).reshape(-1, len(_LEVELS))
