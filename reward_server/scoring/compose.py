"""Composite rewards: several judges' numbers on one conversation made into one.

Pure arithmetic on values in [0, 1]. With values v, weights w and W the sum of the weights:

- `weighted_sum`: sum(w_i v_i) / W, so it stays within [0, 1] whatever the weights are.
- `product`: prod(v_i ^ (w_i / W)), the weighted geometric mean: a part at 0 makes it 0, equal parts leave it alone.
- `min`: the lowest value; it has no weights.
- `gated`: the weighted mean of all parts but the first. While the first, the gate, is below its `at_least`, the
  reward is at most the gate's value.

Uncertainty is carried through to first order, parts taken as independent (GUM, JCGM 100:2008, equation 10):
std(R)^2 = sum((dR/dv_i)^2 std_i^2). Parts whose std is not known add nothing; where no part that moves the
reward knows its own, there is none: an unknown std is never called 0.
Caps and gates of the scenario are applied to what comes out, elsewhere and always.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, prod, sqrt
from typing import Literal, Protocol

Combine = Literal["weighted_sum", "min", "product", "gated"]
RUBRIC = "rubric"
"""The part that is the rubric's own reward."""


class PartLike(Protocol):
    """A part as a request or a scenario writes it; both are validated where they are read."""

    @property
    def judge(self) -> str:
        """`rubric`, or the name of a conversation judge."""

    @property
    def weight(self) -> float:
        """Not negative, finite."""

    @property
    def at_least(self) -> float | None:
        """Of the gate: what it has to reach."""


class CompositeLike(Protocol):
    """A composite as a request or a scenario writes it."""

    @property
    def combine(self) -> Combine:
        """The way in which the parts become one."""

    @property
    def parts(self) -> Sequence[PartLike]:
        """The parts; their order matters for `gated` alone."""


@dataclass(frozen=True, slots=True)
class ScoringCompositePart:
    """One judge of a composite."""

    judge: str
    weight: float = 1.0
    at_least: float | None = None


@dataclass(frozen=True, slots=True)
class ScoringComposite:
    """The composition of the reward; parts that cannot count are left out, so nobody computes them."""

    combine: Combine
    parts: tuple[ScoringCompositePart, ...]

    @property
    def judges(self) -> tuple[str, ...]:
        """The judges that are needed."""
        return tuple(part.judge for part in self.parts)


@dataclass(frozen=True, slots=True)
class PartValue:
    """The value of a part."""

    value: float
    std: float | None = None
    """Standard deviation; None where it is not known."""


RUBRIC_ALONE = ScoringComposite("weighted_sum", (ScoringCompositePart(RUBRIC),))
"""What holds where neither the request nor the scenario says otherwise."""


def composite_of(given: CompositeLike) -> ScoringComposite:
    """The composite that a request or a scenario asks for."""
    parts = tuple(ScoringCompositePart(part.judge, part.weight, part.at_least) for part in given.parts)
    if given.combine != "min":
        gate = parts[: given.combine == "gated"]
        parts = (*gate, *(part for part in parts[len(gate) :] if part.weight > 0))
    return ScoringComposite(given.combine, parts)


def combine(composite: ScoringComposite, values: Mapping[str, PartValue]) -> PartValue:
    """The composite reward before caps; `values` has every part's judge."""
    part_values = [values[part.judge] for part in composite.parts]
    value, shares = _RULES[composite.combine](composite.parts, part_values)
    std = sqrt(fsum(share * share for share in shares if share is not None))
    return PartValue(value, None if std == 0.0 and None in shares else std)


def lower_bound(composite: ScoringComposite, values: Mapping[str, PartValue], risk_aversion: float) -> float:
    """The composite reward less `risk_aversion` times its std, at least 0; a part whose std is not known has no doubt.

    Of `min` it is the lowest of the parts' own bounds: with R - k std a part that rises above another would carry its
    doubt away, and the reward would leap.
    """
    if composite.combine == "min":
        return max(
            0.0, min(part_value.value - risk_aversion * (part_value.std or 0.0) for part_value in values.values())
        )
    whole = combine(composite, values)
    return max(0.0, whole.value - risk_aversion * (whole.std or 0.0))


Combined = tuple[float, Sequence[float | None]]
"""The number, and for each part that moves it dR/dv times its std; None for one whose std is not known."""


def _weighted_sum(parts: Sequence[ScoringCompositePart], heard: Sequence[PartValue]) -> Combined:
    total = fsum(part.weight for part in parts)
    pairs = list(zip(parts, heard, strict=True))
    value = fsum(part.weight * part_value.value for part, part_value in pairs) / total
    return value, [
        None if part_value.std is None else part.weight / total * part_value.std for part, part_value in pairs
    ]


def _product(parts: Sequence[ScoringCompositePart], heard: Sequence[PartValue]) -> Combined:
    total = fsum(part.weight for part in parts)
    powers = [part.weight / total for part in parts]
    factors = [part_value.value**power for part_value, power in zip(heard, powers, strict=True)]
    value = prod(factors)
    shares: list[float | None] = []
    for i, (part_value, power) in enumerate(zip(heard, powers, strict=True)):
        std = part_value.std
        if std is None:
            shares.append(None)
        elif part_value.value > 0.0:
            shares.append(value * power / part_value.value * std)
        else:
            # The slope at 0 is not finite: what one std more would bring takes its place.
            shares.append(prod(factors[:i] + factors[i + 1 :]) * min(std, 1.0) ** power)
    return value, shares


def _min(parts: Sequence[ScoringCompositePart], heard: Sequence[PartValue]) -> Combined:
    del parts
    lowest = min(part_value.value for part_value in heard)
    return lowest, [
        max(
            (part_value.std for part_value in heard if part_value.value == lowest and part_value.std is not None),
            default=None,
        )
    ]


def _gated(parts: Sequence[ScoringCompositePart], heard: Sequence[PartValue]) -> Combined:
    gate, least = heard[0], parts[0].at_least or 0.0
    value, shares = _weighted_sum(parts[1:], heard[1:])
    if gate.value < least and gate.value < value:
        return gate.value, [gate.std]
    return value, shares


_RULES: Mapping[Combine, Callable[[Sequence[ScoringCompositePart], Sequence[PartValue]], Combined]] = {
    "weighted_sum": _weighted_sum,
    "min": _min,
    "product": _product,
    "gated": _gated,
}
