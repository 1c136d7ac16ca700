"""Verdicts to numbers: points to dimensions, dimensions to the reward, failures to caps.

Pure arithmetic. A dimension is what was earned of the points that could be; criteria nobody could decide
leave both sides, and a dimension that has lost too many of its points to them is absent. Weights of
families scale points, and with them how much a dimension counts. Sums are exact (`fsum`), so no order matters.

Spreads of verdicts s are carried through to first order, verdicts taken as independent (GUM, JCGM 100:2008,
equation 10): std(S_d)^2 = sum((w_f points s)^2) / (sum of w_f positive points decided)^2, 0 where S_d is clipped
from outside [0, 1], and std(R)^2 = sum((W_d std(S_d))^2) / (sum W_d)^2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum, sqrt

from reward_server.judges.base import Verdict, VerdictStatus
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
    uncertainty: float | None = None
    """Standard deviation of the reward before caps; None where no verdict has a spread."""
    left_out: tuple[str, ...] = ()
    """Dimensions of which too little was decided."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One dimension of one transcript."""

    name: str
    score: float
    weight: float
    plain_weight: float
    """Its weight in the rubric, whatever families run."""
    std: float | None
    """Standard deviation of the score; None where no verdict has a spread."""


def considered(rubric: Rubric, config: RewardConfig) -> tuple[Criterion, ...]:
    """The criteria whose family runs."""
    return tuple(criterion for criterion in rubric.criteria if config.runs(criterion.family))


def aggregate(rubric: Rubric, verdicts: Mapping[str, Verdict], config: RewardConfig) -> Aggregate | None:
    """The reward of the verdicts on all considered criteria; None when no dimension can be scored."""
    criteria = considered(rubric, config)
    parts = [
        part for dimension in rubric.dimensions if (part := _dimension(dimension, rubric, criteria, verdicts, config))
    ]
    if any(part.weight > 0 for part in parts):
        weighted = [(part, part.weight) for part in parts if part.weight > 0]
    elif parts:
        # Only penalties were asked for: dimensions start from 1 and count as the rubric weighs them.
        weighted = [(part, part.plain_weight) for part in parts]
    else:
        return None
    total = fsum(weight for _, weight in weighted)
    return Aggregate(
        reward=fsum(weight * part.score for part, weight in weighted) / total,
        dimensions={part.name: part.score for part, _ in weighted},
        caps=fired_caps(criteria, verdicts),
        coverage=_coverage(criteria, verdicts, config),
        uncertainty=_root_of_squares(
            [None if part.std is None else weight / total * part.std for part, weight in weighted]
        ),
        left_out=_left_out(rubric, criteria, verdicts, parts),
    )


def fired_caps(criteria: Sequence[Criterion], verdicts: Mapping[str, Verdict]) -> tuple[float, ...]:
    """The caps of the failure criteria that fired."""
    return tuple(c.cap for c in criteria if c.cap is not None and verdicts[c.id].status is VerdictStatus.MET)


def undecided_caps(criteria: Sequence[Criterion], verdicts: Mapping[str, Verdict]) -> tuple[str, ...]:
    """The failure criteria that nobody could decide: the reward may be higher than with them."""
    return tuple(c.id for c in criteria if c.cap is not None and verdicts[c.id].status is VerdictStatus.ABSTAINED)


def _left_out(
    rubric: Rubric, criteria: Sequence[Criterion], verdicts: Mapping[str, Verdict], parts: Sequence[_Part]
) -> tuple[str, ...]:
    """The dimensions that are absent for want of verdicts, not for want of criteria whose family runs."""
    undecided = {c.dimension for c in criteria if verdicts[c.id].status is VerdictStatus.ABSTAINED}
    missing = undecided - {part.name for part in parts}
    return tuple(dimension.name for dimension in rubric.dimensions if dimension.name in missing)


def _dimension(
    dimension: Dimension,
    rubric: Rubric,
    criteria: Sequence[Criterion],
    verdicts: Mapping[str, Verdict],
    config: RewardConfig,
) -> _Part | None:
    """The dimension's score, or None when it is absent."""
    own = [c for c in criteria if c.dimension == dimension.name]
    decided = [c for c in own if verdicts[c.id].status is not VerdictStatus.ABSTAINED]
    in_play, known = _positive(own, config), _positive(decided, config)
    if not decided or in_play - known > MOST_ABSTAINED * in_play + 1e-9:
        return None
    everything = [c for c in rubric.criteria if c.dimension == dimension.name]
    unweighted = fsum(c.points for c in everything if c.points > 0)
    earned = fsum(config.weights[c.family] * c.points * (verdicts[c.id].value or 0.0) for c in decided)
    spread = _root_of_squares([_spread(c, verdicts[c.id], config) for c in decided])
    if in_play > 0:
        raw, scale, weight = earned / known, known, dimension.weight * in_play / unweighted
    else:
        scale = unweighted or fsum(abs(c.points) for c in everything) or 1.0
        raw, weight = 1.0 + earned / scale, 0.0
    score = _clipped(raw)
    # What is clipped from beyond the limits does not move with its verdicts.
    std = None if spread is None else spread / scale if abs(score - raw) < 1e-9 else 0.0
    return _Part(dimension.name, score, weight, dimension.weight, std)


def _spread(criterion: Criterion, verdict: Verdict, config: RewardConfig) -> float | None:
    return None if verdict.spread is None else config.weights[criterion.family] * criterion.points * verdict.spread


def _root_of_squares(known: Sequence[float | None]) -> float | None:
    """The root of the sum of squares of those that are known; None where none is."""
    squares = [number * number for number in known if number is not None]
    return sqrt(fsum(squares)) if squares else None


def _positive(criteria: Sequence[Criterion], config: RewardConfig) -> float:
    return fsum(config.weights[c.family] * c.points for c in criteria if c.points > 0)


def _coverage(criteria: Sequence[Criterion], verdicts: Mapping[str, Verdict], config: RewardConfig) -> float:
    in_play = _positive(criteria, config)
    known = _positive([c for c in criteria if verdicts[c.id].status is not VerdictStatus.ABSTAINED], config)
    return known / in_play if in_play > 0 else 1.0


def _clipped(value: float) -> float:
    return min(1.0, max(0.0, value))
