"""GET /drift: whether scenarios pay differently from how they used to."""

from __future__ import annotations

from trainer_client.wire.base import ResponseModel


class RewardSpread(ResponseModel):
    """Some rewards."""

    n: int
    mean: float
    std: float


class ScenarioDrift(ResponseModel):
    """A scenario's rewards of one scoring version, the newest."""

    collection_slug: str
    scenario_slug: str
    scoring_version: str
    latest: RewardSpread
    """The last 100."""
    before: RewardSpread | None = None
    """Up to 1,000 before them."""
    drift: float | None = None
    """How far `latest` has moved, in standard deviations of `before`; absent for fewer than 200 before."""


class DriftResponse(ResponseModel):
    """Answer of GET /drift."""

    data: list[ScenarioDrift]
    next_cursor: str | None = None
    request_id: str
