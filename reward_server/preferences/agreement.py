"""How often rewards agree with what people said of the same comparisons; the figures of `labs judges agree`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reward_server.jobs.agreement.figures import figures
from reward_server.jobs.agreement.read import WINNERS, Entry, Side
from reward_server.jobs.agreement.scores import Given
from reward_server.store.records import PreferenceRow

REWARD = "reward"


def agreement(rows: Sequence[PreferenceRow]) -> dict[str, Any]:
    """Of labels on comparisons of the newest scoring version among them; `rows` are the newest first.

    Fewer than five labels give no figures. Rewards of two versions do not mix.
    """
    version = next((row.scoring_version for row in rows if row.reward_a is not None), None)
    used = [row for row in rows if row.scoring_version == version and None not in (row.reward_a, row.reward_b)]
    found: dict[str, Any] = {"labels": len(used), "left_out": len(rows) - len(used)}
    if version is None:
        return found
    entries = [_entry(row) for row in used]
    rewards = np.array([side.scores[REWARD] for entry in entries for side in entry.sides])
    of_pairs = figures(entries, Given({REWARD: rewards}, {}, {}))["pairs"].get(REWARD, {})
    return found | {"scoring_version": version, **of_pairs}


def _entry(row: PreferenceRow) -> Entry:
    sides = tuple(Side(scores={REWARD: float(reward or 0.0)}) for reward in (row.reward_a, row.reward_b))
    return Entry(sides, row.comparison_id or row.preference_id, None, WINNERS[row.winner])
