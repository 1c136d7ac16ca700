"""The order in which the checks of a criterion are tried: cheap first, the next one only where that is unsure.

A criterion's own check is step 0, its fallbacks follow. A step settles the criterion unless it abstains or its
value lies within the `unsure` band of the step after it. A step that nobody here decides is passed over; if no step
settles the matter, the last verdict that decided anything stands. A failure is none of these: it stays a failure.
"""

from __future__ import annotations

from dataclasses import dataclass

from reward_server.judges.base import Verdict, VerdictStatus
from scenarios.schema import Check, Criterion


@dataclass(frozen=True, slots=True, repr=False)
class OpenQuestion:
    """A criterion that somebody has to be asked about, and what is known of it so far."""

    criterion: Criterion
    """As its author wrote it."""
    step: int
    """The step to be asked next."""
    standing: Verdict | None = None
    """What the steps before decided, unsurely; it stands if nobody decides better."""

    @property
    def asked(self) -> Criterion:
        """The criterion with the check of this step, as judges are given it."""
        return at_step(self.criterion, self.step)

    @property
    def route(self) -> str:
        """By which a panel finds the judge of this step."""
        return route(check_at(self.criterion, self.step))


def check_at(criterion: Criterion, step: int) -> Check:
    """The check of a step."""
    return criterion.check if step == 0 else criterion.fallback[step - 1].check


def at_step(criterion: Criterion, step: int) -> Criterion:
    """The criterion as if the check of the step were its only one."""
    if not criterion.fallback:
        return criterion
    return criterion.model_copy(update={"check": check_at(criterion, step), "fallback": ()})


def route(check: Check) -> str:
    """The key that a panel sends a check by: its kind, for plug-ins with the name of the plug-in."""
    return f"plugin:{check.plugin.name}" if check.plugin else check.kind


def settles(criterion: Criterion, step: int, verdict: Verdict) -> bool:
    """True if no further step is needed after this verdict."""
    if verdict.status is VerdictStatus.ABSTAINED or verdict.value is None:
        return False
    if step >= len(criterion.fallback):
        return True
    low, high = criterion.fallback[step].unsure
    return not low <= verdict.value <= high


def better(standing: Verdict | None, verdict: Verdict) -> Verdict:
    """The verdict that stands after one more: an abstention takes nothing back."""
    return standing if standing is not None and verdict.status is VerdictStatus.ABSTAINED else verdict
