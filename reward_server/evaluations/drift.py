"""Drift of rewards: the latest evaluations of a lab's scenarios against those before them.

The same figure as the metric `labs_reward_drift`, which is of all labs together and of one process.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import pstdev

from reward_server.access import collection_for, visible_collections
from reward_server.auth.idempotency import Body
from reward_server.auth.lab import Lab
from reward_server.store.store import Store
from reward_server.telemetry.drift import BEFORE, ENOUGH_BEFORE, LATEST, in_deviations
from scenarios.library import Catalog


class DriftService:
    """Drift of stored rewards."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store = store
        self._catalog = catalog

    async def of(self, lab: Lab, collection: str | None) -> list[Body]:
        """Of every scenario that the lab may use and has evaluations of, in their order.

        Raises:
            CollectionNotFound: there is no such collection.
            Forbidden: the key has no access to it.
        """
        if collection is None:
            asked = list(visible_collections(lab, self._catalog))
        else:
            asked = [collection_for(lab, self._catalog, collection)]
        found: list[Body] = []
        async with self._store.reading() as unit:
            for slug, name in ((each.card.slug, name) for each in asked for name in each.scenarios):
                rows = await unit.evaluations.latest_rewards(lab.lab_id, slug, name, LATEST + BEFORE)
                if rows:
                    version = rows[0][0]
                    rewards = [reward for each, reward in rows if each == version]
                    where = {"collection_slug": slug, "scenario_slug": name, "scoring_version": version}
                    found.append({**where, **_moved(rewards)})
        return found


def _moved(rewards: Sequence[float]) -> Body:
    """Rewards of one version, the newest first."""
    latest, before = rewards[:LATEST], rewards[LATEST:]
    body: Body = {"latest": _described(latest)}
    if before:
        body["before"] = _described(before)
    if len(before) >= ENOUGH_BEFORE:
        body["drift"] = round(in_deviations(latest, before), 4)
    return body


def _described(rewards: Sequence[float]) -> Body:
    return {"n": len(rewards), "mean": math.fsum(rewards) / len(rewards), "std": pstdev(rewards)}
