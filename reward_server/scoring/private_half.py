"""The private half of a scenario, laid out for its author: facts by tier with their conditions, rubric by dimension.

Only for whoever has the scenario on disk anyway; nothing of it may reach a key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from personas.case.compiled import CompiledTopic
from personas.case.schema import Condition, Needs, Tier
from scenarios.library import SealedScenario
from scenarios.schema import Criterion


@dataclass(frozen=True, slots=True, repr=False)
class FactSheet:
    """A fact, and what opens it."""

    id: str
    says: Sequence[str]
    asks: Sequence[str]
    conditions: Sequence[str]


@dataclass(frozen=True, slots=True, repr=False)
class CriterionSheet:
    """A criterion of the rubric."""

    id: str
    about: str
    family: str
    kind: str
    points: float
    cap: float | None


@dataclass(frozen=True, slots=True, repr=False)
class PrivateHalf:
    """All of it."""

    role: str
    openings: Sequence[str]
    temperaments: Sequence[str]
    facts: dict[str, list[FactSheet]] = field(repr=False)
    """By tier."""
    commitments: Sequence[tuple[str, Sequence[str]]]
    dimensions: Sequence[tuple[str, float, Sequence[CriterionSheet]]]
    version: int


def half_of(scenario: SealedScenario) -> PrivateHalf:
    """The private half of a scenario, as its author wrote it."""
    case, rubric = scenario.case, scenario.secrets.rubric
    facts: dict[str, list[FactSheet]] = {tier.value: [] for tier in Tier}
    for topic in case.topics:
        facts[topic.tier.value].append(_fact(topic))
    dimensions = [
        (dimension.name, dimension.weight, [_criterion(c) for c in rubric.criteria if c.dimension == dimension.name])
        for dimension in rubric.dimensions
    ]
    return PrivateHalf(
        role=case.role,
        openings=case.openings,
        temperaments=case.temperaments,
        facts={tier: names for tier, names in facts.items() if names},
        commitments=[(commitment.id, commitment.examples[:4]) for commitment in case.commitments],
        dimensions=dimensions,
        version=scenario.version,
    )


def _fact(topic: CompiledTopic) -> FactSheet:
    return FactSheet(topic.id, topic.answers or topic.says, topic.examples[:4], _conditions(topic.gate))


def _conditions(gate: Condition) -> list[str]:
    conditions = [f"trust of {gate.rapport:g}"] if gate.rapport else []
    conditions += [f"after {_named(gate.requires)}"] if gate.requires else []
    return conditions + ([f"from turn {gate.after_turn + 1} on"] if gate.after_turn else [])


def _named(needs: Needs) -> str:
    return ", ".join(need if isinstance(need, str) else " or ".join(need) for need in needs)


def _criterion(criterion: Criterion) -> CriterionSheet:
    kinds = " → ".join(check.kind for check in criterion.checks)
    return CriterionSheet(criterion.id, criterion.about, criterion.family.value, kinds, criterion.points, criterion.cap)
