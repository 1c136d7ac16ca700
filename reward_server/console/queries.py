"""Queries of the pages of lists: empty fields of a form are left out, the rest is checked."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode

from pydantic import AfterValidator, BaseModel, Field

from reward_server.access import collections_asked_for
from reward_server.api.body import validate
from reward_server.api.paging import plain_text
from reward_server.api.query import QueryModel
from reward_server.console.visit import Visit
from reward_server.store.browsing import BrowseFilter, Order
from reward_server.store.records import EpisodeStatus, EvaluationSource

M = TypeVar("M", bound=BaseModel)
Text = Annotated[str, Field(max_length=200), AfterValidator(plain_text)]
CAPS = ("failure_criterion", "injection", "recital", "stuffing", "scope", "only_asks", "degenerate")
MOST_SKIPPED = 5_000


class Filter(QueryModel):
    """The conditions on a list of conversations."""

    scenario: Text = ""
    """`collection/scenario`, or a collection alone."""
    agent: Text = ""
    status: EpisodeStatus | None = None
    source: EvaluationSource | None = None
    since: date | None = None
    until: date | None = None
    least: float | None = Field(default=None, ge=0.0, le=1.0)
    most: float | None = Field(default=None, ge=0.0, le=1.0)
    cap: Text = ""
    text: Text = ""
    order: Order = Order.NEWEST
    cursor: Annotated[str, Field(max_length=400)] | None = None
    skip: Annotated[int, Field(ge=0, le=MOST_SKIPPED)] = 0

    def wanted(self, visit: Visit) -> BrowseFilter:
        """The same for the store; only what this visitor may see. Who may not see caps may not search by them."""
        collection, _, scenario = self.scenario.partition("/")
        return BrowseFilter(
            collections=collections_asked_for(visit.lab, collection or None),
            scenario=scenario or None,
            agent_id=self.agent or None,
            status=self.status,
            source=None if self.source is None else self.source.value,
            since=None if self.since is None else _begin(self.since),
            until=None if self.until is None else _begin(self.until) + timedelta(days=1),
            least=self.least,
            most=self.most,
            capped_by=(self.cap or None) if visit.sees_why else None,
            text=self.text or None,
            order=self.order,
        )

    def query(self, **other: Any) -> str:
        """The query of the same list with something else in it."""
        told = self.model_dump(mode="json", exclude_defaults=True, exclude={"cursor", "skip"}) | other
        return urlencode({name: value for name, value in told.items() if value is not None})


def read(visit: Visit, model: type[M]) -> M:
    """The query of a page.

    Raises:
        InvalidRequest: something in it is not known, or out of range.
    """
    given = {name: value for name, value in visit.request.query_params.items() if value.strip()}
    return validate(model, given)


def _begin(day: date) -> datetime:
    return datetime.combine(day, time.min, UTC)
