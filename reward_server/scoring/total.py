"""From verdicts and estimates to the reward: aggregate, combine, cut by doubt, cap."""

from __future__ import annotations

from collections.abc import Mapping

from reward_server.errors import InvalidRewardConfig, JudgeFailed, LabsError
from reward_server.judges.base import Outcome, Verdict, VerdictStatus
from reward_server.judges.estimate import Estimate
from reward_server.scoring.aggregate import Aggregate, aggregate, fired_caps, undecided_caps
from reward_server.scoring.compose import RUBRIC, PartValue, combine, lower_bound
from reward_server.scoring.estimates import JudgeSnapshot, heard_as
from reward_server.scoring.pending import PendingScore
from reward_server.scoring.scored import FAILURE_CRITERION, Scored, Unscored, moments_of
from scenarios.rubric_file import GIVEN

UNDECIDABLE = "No judge of this server can decide what these weights ask for."
UNDECIDABLE_KIND = "undecidable"
"""How it is called that the judges which are set up cannot decide enough: none of them broke."""
NEEDS_A_MODEL = (
    "Such criteria need a language model (LABS_LLM_PROVIDER) or a decision model (LABS_DECISIONS): docs/providers.md"
)
UNCERTAINTY_UNKNOWN = "reward_config.risk_aversion: no judge that made this reward knows its uncertainty."


def finished(
    half: PendingScore, answer: Outcome, estimates: Mapping[str, Estimate | LabsError | None], snapshot: JudgeSnapshot
) -> Scored | Unscored:
    """The outcome once the judges' `answer` and the estimates are there."""
    if isinstance(answer, LabsError):
        return Unscored(answer)
    known: dict[str, Estimate] = {}
    for name, estimate in estimates.items():
        if isinstance(estimate, LabsError):
            return Unscored(estimate)
        if estimate is not None:
            known[name] = estimate
    try:
        return total_of(half, {**half.verdicts, **{v.criterion_id: v for v in answer}}, known, snapshot)
    except LabsError as error:
        return Unscored(error)


def total_of(
    half: PendingScore, verdicts: Mapping[str, Verdict], estimates: Mapping[str, Estimate], snapshot: JudgeSnapshot
) -> Scored:
    """The reward, with what it is made of."""
    rubric = half.case.scenario.secrets.rubric
    total = _rubric_total(half, verdicts)
    values = {RUBRIC: PartValue(total.reward, total.uncertainty)} if RUBRIC in half.composite.judges else {}
    values |= {name: _heard(estimate, gated=bool(half.gates)) for name, estimate in estimates.items()}
    whole = combine(half.composite, values)
    value = _cautious(half, values) if half.config.risk_aversion else whole.value
    limits = [*((FAILURE_CRITERION, cap) for cap in total.caps), *((gate.name, gate.cap) for gate in half.gates)]
    reward = min(value, *(cap for _, cap in limits), 1.0)
    ordered = tuple(verdicts[criterion.id] for criterion in half.criteria)
    return Scored(
        reward=round(reward, 4),
        scores={name: round(score, 4) for name, score in total.dimensions.items()},
        verdicts=ordered,
        caps=total.caps,
        gates=half.gates,
        capped_by=tuple(dict.fromkeys(kind for kind, cap in limits if cap < value)),
        abstained=tuple(v.criterion_id for v in ordered if v.status is VerdictStatus.ABSTAINED),
        undecided_caps=undecided_caps(half.criteria, verdicts),
        left_out=total.left_out,
        coverage=round(total.coverage, 4),
        moments=moments_of(rubric, verdicts),
        scoring_version=half.scoring_version,
        uncertainty=None if whole.std is None else round(whole.std, 4),
        parts={} if half.composite.judges == (RUBRIC,) else {name: round(v.value, 4) for name, v in values.items()},
        judges=heard_as(half.composite, snapshot.judges),
    )


def _heard(estimate: Estimate, *, gated: bool) -> PartValue:
    """A judge of the whole conversation; behind a closed gate its estimate is worth nothing, however well it meant.

    A cap alone would let an attack lift a conversation of which such a judge thinks less than the cap.
    """
    return PartValue(0.0 if gated else estimate.value, estimate.epistemic)


def _cautious(half: PendingScore, values: Mapping[str, PartValue]) -> float:
    """The lower confidence bound that was asked for, if some judge of the reward knows its doubt.

    Where that judge does not move this reward (a gate of the composite is closed, say), there is nothing to cut by.
    Whether a request is refused shall not hang on what was said in the conversation.
    """
    if half.gates:
        # Estimates count for nothing here, and so do their doubts: an attack would buy the std back.
        return 0.0
    if all(value.std is None for value in values.values()):
        raise InvalidRewardConfig(UNCERTAINTY_UNKNOWN)
    return lower_bound(half.composite, values, half.config.risk_aversion)


def _rubric_total(half: PendingScore, verdicts: Mapping[str, Verdict]) -> Aggregate:
    """The rubric's part; only its caps where the composite is made of others."""
    if RUBRIC not in half.composite.judges:
        return Aggregate(0.0, {}, fired_caps(half.criteria, verdicts), 1.0)
    total = aggregate(half.case.scenario.secrets.rubric, verdicts, half.config)
    if total is None:
        raise JudgeFailed(_undecidable(half, verdicts), kind=UNDECIDABLE_KIND)
    return total


def _undecidable(half: PendingScore, verdicts: Mapping[str, Verdict]) -> str:
    """The reason why there is no reward; who brought the rubric is told of which criteria, too."""
    if half.case.scenario.collection != GIVEN:
        return UNDECIDABLE
    names = [criterion.id for criterion in half.criteria if verdicts[criterion.id].status is VerdictStatus.ABSTAINED]
    listed = ", ".join(f"`{name}`" for name in names)
    return f"No judge here can decide {listed}, and too little of the rubric is left. {NEEDS_A_MODEL}"
