"""Rank: agents by mean reward with intervals, the matrix of agents and scenarios, and judges against people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import Response
from pydantic import Field

from reward_server.access import visible_collections
from reward_server.api.access import access_of
from reward_server.api.query import QueryModel
from reward_server.api.routes import agents as api
from reward_server.api.routes import drift as drift_api
from reward_server.api.routes import preferences as preferences_api
from reward_server.console import queries, view
from reward_server.console.routing import Pages
from reward_server.console.visit import Visit
from reward_server.preferences.pairs import Source
from reward_server.reward_models.reliability import Bin

pages = Pages()


class BoardQuery(QueryModel):
    """The choice of a table."""

    collection: queries.Text = ""
    version: Annotated[str, Field(max_length=64)] = ""


@pages.read("/leaderboard", like=api.read_leaderboard)
async def leaderboard(visit: Visit) -> Response:
    """The lab's agents in a collection."""
    query = queries.read(visit, BoardQuery)
    collections = list(visible_collections(visit.lab, visit.services.catalog))
    chosen = query.collection or (collections[0].card.slug if collections else "")
    board = await visit.services.leaderboard.of(visit.lab, chosen, None, query.version or None) if chosen else {}
    return view.page(visit, "leaderboard.html", board=board, collections=collections, chosen=chosen)


@pages.read("/agreement", like=preferences_api.preference_agreement)
async def agreement(visit: Visit) -> Response:
    """The page on how often rewards agree with people, and where they do not."""
    services, lab = visit.services, visit.lab
    listed = await services.preferences.page(lab, limit=100, after=None, collection=None, source=Source.LABEL)
    # What a reward was most sure of, and people were not, is read first.
    apart = sorted(filter(_disagrees, listed.bodies), key=lambda each: -abs(each["reward_a"] - each["reward_b"]))
    drift = []
    if not lab.scopes.isdisjoint(access_of(drift_api.read_drift).scopes):
        drift = await services.drift.of(lab, None)
    found, bins = await services.preferences.agreement_by_margin(lab, None)
    return view.page(visit, "agreement.html", found=found, apart=apart, drift=drift, curve=curve(bins))


def curve(bins: Sequence[Bin]) -> dict[str, object] | None:
    """The agreement with people by the distance of the rewards, beside that of a coin; None of too few labels."""
    if not bins:
        return None
    lines = [
        {"name": "people prefer the higher reward", "values": [round(each.observed, 4) for each in bins]},
        {"name": "a coin", "values": [0.5] * len(bins)},
    ]
    x = [round(each.predicted, 4) for each in bins]
    return {"kind": "line", "x": x, "lines": lines, "unit": "distance of the two rewards"}


def _disagrees(label: dict[str, object]) -> bool:
    """True if the rewards prefer another side than the person did."""
    a, b = label.get("reward_a"), label.get("reward_b")
    if not isinstance(a, float | int) or not isinstance(b, float | int):
        return False
    better = "tie" if a == b else "a" if a > b else "b"
    return better != label["winner"]
