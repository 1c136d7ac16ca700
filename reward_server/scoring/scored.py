"""The outcome of scoring a transcript: a reward with its reasons, or the reason why there is none.

Only `reward` and `scores` are for the agent's side. Everything else is the operator's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reward_server.errors import LabsError
from reward_server.judges.base import Verdict
from reward_server.scoring.gates import Gate
from scenarios.schema import Rubric

FAILURE_CRITERION = "failure_criterion"
"""The kind of a cap that a failure criterion of the rubric brought; the other kinds are the names of gates."""


@dataclass(frozen=True, slots=True)
class Moments:
    """The agent turns in which a dimension moved."""

    gained: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Scored:
    """A reward and everything it rests on."""

    reward: float
    scores: Mapping[str, float]
    """By dimension, in the rubric's order; absent dimensions are missing, all of them where no rubric was needed."""
    verdicts: tuple[Verdict, ...]
    caps: tuple[float, ...]
    """Of the failure criteria that fired."""
    gates: tuple[Gate, ...]
    abstained: tuple[str, ...]
    coverage: float
    """Share of the positive points in play that was decided."""
    moments: Mapping[str, Moments]
    capped_by: tuple[str, ...] = ()
    """The kinds of caps that lowered the reward: `failure_criterion`, or names of gates."""
    undecided_caps: tuple[str, ...] = ()
    """Of those that abstained, the failure criteria: the reward may be too high."""
    left_out: tuple[str, ...] = ()
    """Dimensions that do not count, as too many of their points were undecided."""
    scoring_version: str = ""
    """Of the judges that made it, whatever is active by now."""
    uncertainty: float | None = None
    """Standard deviation of the reward before caps and gates, carried through from judges that know theirs; None
    where none does. Model uncertainty: what more samples or more data would lower."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """Of a composite: what each judge came to, by its name; for the operator."""
    judges: tuple[str, ...] = ()
    """Of a composite: who made it, the reward model by its id; empty where it is the rubric's reward alone."""

    def __repr__(self) -> str:
        return f"<Scored: {self.reward}>"

    @property
    def flags(self) -> tuple[str, ...]:
        """Names of the gates that closed, for the operator."""
        return tuple(gate.name for gate in self.gates)


@dataclass(frozen=True, slots=True)
class Unscored:
    """No reward: never to be rendered as a number."""

    error: LabsError

    @property
    def code(self) -> str:
        """The stable code of the failure."""
        return self.error.code

    @property
    def message(self) -> str:
        """The message that the caller may be told."""
        return self.error.message


def or_raise(outcome: Scored | Unscored) -> Scored:
    """The score, or the failure raised."""
    if isinstance(outcome, Unscored):
        raise outcome.error
    return outcome


def moments_of(rubric: Rubric, verdicts: Mapping[str, Verdict]) -> dict[str, Moments]:
    """Per dimension the turns that the verdicts cite."""
    gained: dict[str, set[int]] = {dimension.name: set() for dimension in rubric.dimensions}
    lost: dict[str, set[int]] = {dimension.name: set() for dimension in rubric.dimensions}
    for criterion in rubric.criteria:
        verdict = verdicts.get(criterion.id)
        if verdict is not None and verdict.evidence and criterion.dimension in gained:
            cited = (e.turn for e in verdict.evidence if e.role == "agent")
            (gained if criterion.points > 0 else lost)[criterion.dimension].update(cited)
    return {name: Moments(tuple(sorted(gained[name])), tuple(sorted(lost[name]))) for name in gained}
