"""Readings for rules: the metrics of a moment, and what they grew by since the moment before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry

Labels = frozenset[tuple[str, str]]
Page = Mapping[str, Mapping[Labels, float]]
LabelFilter = Callable[[Mapping[str, str]], bool]


def _any(_labels: Mapping[str, str]) -> bool:
    return True


def page_of(registry: CollectorRegistry) -> Page:
    """Every sample there is, by its name."""
    page: dict[str, dict[Labels, float]] = {}
    for family in registry.collect():
        for sample in family.samples:
            page.setdefault(sample.name, {})[frozenset(sample.labels.items())] = sample.value
    return page


@dataclass(frozen=True)
class Readings:
    """Two moments of one server."""

    now: Page
    before: Page

    def level(self, name: str, wanted: LabelFilter = _any) -> float:
        """The highest value of a gauge, 0 where there is none."""
        return max((value for labels, value in self.now.get(name, {}).items() if wanted(dict(labels))), default=0.0)

    def lowest(self, name: str, wanted: LabelFilter = _any) -> float:
        """The lowest value of a gauge, infinity where there is none."""
        return min(
            (value for labels, value in self.now.get(name, {}).items() if wanted(dict(labels))), default=float("inf")
        )

    def grown(self, name: str, wanted: LabelFilter = _any) -> float:
        """The growth of a counter in all."""
        earlier = self.before.get(name, {})
        return sum(
            value - earlier.get(labels, 0.0) for labels, value in self.now.get(name, {}).items() if wanted(dict(labels))
        )

    def share(self, part: float, whole: float, least: float) -> float:
        """A part of a whole; 0 while the whole is too small to tell."""
        return part / whole if whole >= least else 0.0

    def quantile(self, name: str, share: float, least: float = 20.0, wanted: LabelFilter = _any) -> float:
        """The value that so many observations since the moment before are below; 0 while there are too few."""
        bounds: dict[float, float] = {}
        for labels, value in self.now.get(f"{name}_bucket", {}).items():
            if not wanted(dict(labels)):
                continue
            grown = value - self.before.get(f"{name}_bucket", {}).get(labels, 0.0)
            bound = float(dict(labels)["le"])
            bounds[bound] = bounds.get(bound, 0.0) + grown
        return quantile(bounds, share) if bounds and bounds[max(bounds)] >= least else 0.0


def quantile(bounds: Mapping[float, float], share: float) -> float:
    """Of cumulative counts by upper bound, as Prometheus' `histogram_quantile` does it: linear within a bucket."""
    ordered = sorted(bounds.items())
    wanted = share * ordered[-1][1]
    low, below = 0.0, 0.0
    for bound, count in ordered:
        if count >= wanted:
            if bound == float("inf"):
                return low
            return low + (bound - low) * ((wanted - below) / (count - below) if count > below else 0.0)
        low, below = bound, count
    return low
