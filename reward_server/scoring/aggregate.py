"""Verdicts to numbers: points to dimensions, dimensions to the reward, failures to caps.

Pure arithmetic. A dimension is what was earned of the points that could be; criteria nobody could decide
leave both sides, and a dimension that has lost too many of its points to them is absent. Weights of
families scale points, and with them how much a dimension counts. Sums are exact (`fsum`), so no order matters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from reward_server.judges.base import Status, Verdict
from reward_server.scoring.config import RewardConfig
from scenarios.schema import Criterion, Dimension, Rubric

MOST_ABSTAINED = 0.3
"""The largest share of a dimension's positive points that may be undecided."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The reward before caps, and what it is made of."""

    reward: float
    dimensions: Mapping[str, float]
    caps: tuple[float, ...]
    """Of the failure criteria that fired."""
    coverage: float
    """Share of the positive points in play that was decided."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One dimension of one transcript."""

    name: str
    score: float
    weight: float
    plain_weight: float
    """Its weight in the rubric, whatever families run."""


def considered(rubric: Rubric, config: RewardConfig) -> tuple[Criterion, ...]:
    """The criteria whose family runs."""
    return tuple(criterion for criterion in rubric.criteria if config.runs(criterion.family))


def aggregate(rubric: Rubric, verdicts: Mapping[str, Verdict], config: RewardConfig) -> Aggregate | None:
    """The reward of the verdicts on all considered criteria; None when no dimension can be scored."""
    criteria = considered(rubric, config)
    parts = [part for each in rubric.dimensions if (part := _dimension(each, rubric, criteria, verdicts, config))]
    if any(part.weight > 0 for part in parts):
        parts = [part for part in parts if part.weight > 0]
        reward = fsum(part.weight * part.score for part in parts) / fsum(part.weight for part in parts)
    elif parts:
        # Only penalties were asked for: dimensions start from 1 and count as the rubric weighs them.
        reward = fsum(part.plain_weight * part.score for part in parts) / fsum(part.plain_weight for part in parts)
    else:
        return None
    caps = tuple(c.cap for c in criteria if c.cap is not None and verdicts[c.id].status is Status.MET)
    return Aggregate(reward, {part.name: part.score for part in parts}, caps, _coverage(criteria, verdicts, config))


def _dimension(
    dimension: Dimension,
    rubric: Rubric,
    criteria: Sequence[Criterion],
    verdicts: Mapping[str, Verdict],
    config: RewardConfig,
) -> _Part | None:
    """The dimension's score, or None when it is absent."""
    own = [c for c in criteria if c.dimension == dimension.name]
    decided = [c for c in own if verdicts[c.id].status is not Status.ABSTAINED]
    in_play, known = _positive(own, config), _positive(decided, config)
    if not decided or in_play - known > MOST_ABSTAINED * in_play + 1e-9:
        return None
    everything = [c for c in rubric.criteria if c.dimension == dimension.name]
    unweighted = fsum(c.points for c in everything if c.points > 0)
    earned = fsum(config.weights[c.family] * c.points * (verdicts[c.id].value or 0.0) for c in decided)
    if in_play > 0:
        return _Part(
            dimension.name, _clipped(earned / known), dimension.weight * in_play / unweighted, dimension.weight
        )
    scale = unweighted or fsum(abs(c.points) for c in everything) or 1.0
    return _Part(dimension.name, _clipped(1.0 + earned / scale), 0.0, dimension.weight)


def _positive(criteria: Sequence[Criterion], config: RewardConfig) -> float:
    return fsum(config.weights[c.family] * c.points for c in criteria if c.points > 0)


def _coverage(criteria: Sequence[Criterion], verdicts: Mapping[str, Verdict], config: RewardConfig) -> float:
    in_play = _positive(criteria, config)
    known = _positive([c for c in criteria if verdicts[c.id].status is not Status.ABSTAINED], config)
    return known / in_play if in_play > 0 else 1.0


def _clipped(value: float) -> float:
    return min(1.0, max(0.0, value))
