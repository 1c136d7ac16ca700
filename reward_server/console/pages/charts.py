"""Charts of a lab's episodes: how rewards are spread, how length and reward go together, how often caps hold.

What a researcher looks at to find a hacked reward in a minute: a heap at one value, long talk that pays, a cap that is
always there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from fastapi import Response

from reward_server.access import visible_collections
from reward_server.api.routes import episodes as api
from reward_server.console import queries, view
from reward_server.console.routing import Pages
from reward_server.console.visit import Visit
from reward_server.store.browsing import BrowsedRow

pages = Pages()
Json = dict[str, Any]
MOST_EPISODES = 1_000
MOST_POINTS = 500
MOST_DIMENSIONS = 8
BINS = 20


@pages.read("/charts", like=api.list_episodes)
async def charts(visit: Visit) -> Response:
    """Of the newest episodes that fit the filter and have a reward."""
    wanted = queries.read(visit, queries.Filter)
    lab_id = visit.lab.lab_id
    async with visit.services.store.reading() as unit:
        found = await unit.browsing.outcomes(
            lab_id, wanted.wanted(visit), MOST_EPISODES, now=visit.services.clock.now()
        )
        scored = [row for row in found if row.reward is not None]
        drawn = scored[:MOST_POINTS]
        lengths = await unit.browsing.lengths(lab_id, [row.id for row in drawn])
    dimensions, not_drawn = _dimensions(scored)
    return view.page(
        visit,
        "charts.html",
        filter=wanted,
        scenarios=list(visible_collections(visit.lab, visit.services.catalog)),
        count=len(scored),
        is_cut=len(found) == MOST_EPISODES,
        mean=_mean([row.reward or 0.0 for row in scored]),
        rewards=histogram((row.reward or 0.0 for row in scored), "reward"),
        dimensions=dimensions,
        not_drawn=not_drawn,
        scatter=_scatter(drawn, lengths),
        caps=_caps(scored) if visit.sees_why else None,
        by_scenario=_by_scenario(scored),
    )


def histogram(values: Iterable[float], label: str) -> Json:
    """The number of values in each twentieth of [0, 1]; 1 belongs to the last."""
    counts = Counter(min(BINS - 1, int(value * BINS)) for value in values)
    return {
        "kind": "bars",
        "x": [round(place / BINS, 3) for place in range(BINS)],
        "counts": [counts[place] for place in range(BINS)],
        "label": label,
    }


def _dimensions(scored: Sequence[BrowsedRow]) -> tuple[list[tuple[str, Json]], int]:
    """Histograms of the dimensions that most episodes have, and how many others there are."""
    names = [name for name, _ in Counter(name for row in scored for name in row.scores).most_common()]
    drawn = sorted(names[:MOST_DIMENSIONS])
    values = {name: [row.scores[name] for row in scored if name in row.scores] for name in drawn}
    return [(name, histogram(values[name], "")) for name in drawn], len(names) - len(drawn)


def _scatter(drawn: Sequence[BrowsedRow], lengths: dict[str, int]) -> Json:
    points = sorted((lengths.get(row.id, 0), row.reward, row.id) for row in drawn)
    return {
        "kind": "scatter",
        "x": [point[0] for point in points],
        "y": [point[1] for point in points],
        "ids": [point[2] for point in points],
        "path": "/console/episodes/",
        "label": "characters that the agent wrote",
    }


def _caps(scored: Sequence[BrowsedRow]) -> list[tuple[str, int, float]]:
    """(kind, episodes, share) of each cap that holds anywhere; the most frequent first."""
    counts = Counter(cap for row in scored for cap in set(row.capped_by))
    return [(cap, count, count / len(scored)) for cap, count in counts.most_common()]


def _by_scenario(scored: Sequence[BrowsedRow]) -> list[tuple[str, int, float, float, float]]:
    """(scenario, episodes, mean, lowest, highest), the lowest mean first."""
    groups: dict[str, list[float]] = {}
    for row in scored:
        groups.setdefault(f"{row.collection}/{row.scenario}", []).append(row.reward or 0.0)
    rows = [(name, len(found), _mean(found) or 0.0, min(found), max(found)) for name, found in groups.items()]
    return sorted(rows, key=lambda row: row[2])


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
