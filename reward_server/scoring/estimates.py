"""Hears the judges of whole conversations, and takes nothing from them that is no number.

A judge is given all cases of a call at once. What it raises fails the requests that asked for it and no other;
an estimate outside [0, 1], or that is no number at all, is a failure: it is never clipped into a reward.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from typing import Protocol, runtime_checkable

import structlog

from reward_server.errors import InvalidRewardConfig, JudgeFailed, LabsError, ProviderFailed
from reward_server.judges.base import Case
from reward_server.judges.estimate import CLASSIFIER, REWARD_MODEL, ConversationJudge, Estimate
from reward_server.scoring.compose import RUBRIC, ScoringComposite
from scenarios.spelling import meant

log = structlog.get_logger(__name__)

Judges = Mapping[str, ConversationJudge]
"""By the name that composites call them."""
TakeSnapshot = Callable[[], Judges]
"""Gives the judges of this moment; what it gave stays as it is, because another model may be activated any time."""


@dataclass(frozen=True, slots=True)
class JudgeSnapshot:
    """The conversation judges that a call is scored with, and the scoring version that they make."""

    judges: Judges
    scoring_version: str


def heard_as(composite: ScoringComposite, judges: Judges) -> tuple[str, ...]:
    """The parts of a composite as answers name them: a reward model by its id, too. None for the rubric alone."""
    if composite.judges == (RUBRIC,):
        return ()
    return tuple(f"{name}:{id_of_model(judges[name])}" if name == REWARD_MODEL else name for name in composite.judges)


def id_of_model(judge: ConversationJudge) -> str:
    """The id of a judge's learned model: `rm_…`, without the precision it is computed in."""
    return judge.version.partition("/")[0]


def missing_judge(composite: ScoringComposite, judges: Judges) -> str | None:
    """The first part of a composite that nobody here can give."""
    return next((name for name in composite.judges if name != RUBRIC and name not in judges), None)


def refused(missing: str, judges: Judges) -> InvalidRewardConfig:
    """The error for a request whose composite names a judge that is not here."""
    advice = f" {way_out(missing)}." if missing in {REWARD_MODEL, CLASSIFIER} else ""
    there = ", ".join(f"`{name}`" for name in (RUBRIC, *judges))
    return InvalidRewardConfig(
        f"reward_config.composite: no judge `{missing}` of whole conversations is available on this server; there is "
        f"{there}.{meant(missing, (RUBRIC, *judges))}{advice}"
    )


def way_out(missing: str) -> str:
    """Advice for an operator about a judge that is not here."""
    if missing == REWARD_MODEL:
        return "No reward model is active: ./labs reward-model activate"
    if missing == CLASSIFIER:
        return "No classifier is set: LABS_CLASSIFIER"
    return "A plug-in has to be installed and named in LABS_JUDGE_PLUGINS"


def reads_record(judge: ConversationJudge) -> bool:
    """True if a judge looks at what replaying a case brought to light; one that does not, says so."""
    return bool(getattr(judge, "reads_record", True))


@runtime_checkable
class PreparingJudge(Protocol):
    """A conversation judge that can be told early what it will be asked."""

    async def prepare(self, cases: Sequence[Case]) -> None:
        """Have computed, elsewhere than in a scoring thread, what the estimates need."""


async def prepared(judge: ConversationJudge, cases: Sequence[Case]) -> None:
    """Let a judge prepare, if it can; where that fails, estimating fails again and says so.

    Raises:
        Unavailable: too much is waiting already: the whole call may be sent again.
    """
    if isinstance(judge, PreparingJudge):
        with suppress(ProviderFailed):
            await judge.prepare(cases)


def estimates_of(judge: ConversationJudge, cases: Sequence[Case]) -> list[Estimate | LabsError]:
    """One sound estimate per case, or why there is none; blocking."""
    try:
        estimates = list(judge.estimate(cases))
    except LabsError as error:
        return [error] * len(cases)
    except Exception as error:  # noqa: BLE001 (a provider boundary: a judge may be anybody's program)
        # Only the kind of error: its message may quote the conversation.
        log.error("judge_failed", judge=judge.name, error=type(error).__name__)  # noqa: TRY400
        return [JudgeFailed()] * len(cases)
    if len(estimates) != len(cases):
        log.error("judge_failed", judge=judge.name, error="WrongCount")
        return [JudgeFailed()] * len(cases)
    return [_sound(judge, estimate) for estimate in estimates]


def _sound(judge: ConversationJudge, given: object) -> Estimate | LabsError:
    if isinstance(given, Estimate):
        stds = [std for std in (given.epistemic, given.noise) if std is not None]
        numbers = [given.value, *given.dimensions.values()]
        if all(_is_share(number) for number in numbers) and all(_is_number(std) and std >= 0.0 for std in stds):
            return given
    log.error("judge_failed", judge=judge.name, error="NoEstimate")
    return JudgeFailed()


def _is_number(value: object) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool) and isfinite(value)


def _is_share(value: object) -> bool:
    return isinstance(value, float | int) and _is_number(value) and 0.0 <= value <= 1.0
