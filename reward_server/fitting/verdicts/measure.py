"""Has a judge decide labelled verdicts, and says how far it agrees: failures are counted and never become a number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from reward_server.errors import JudgeFailed, LabsError
from reward_server.fitting.verdicts.read import LabelledTalk
from reward_server.judges.base import Case, RemoteJudge, Verdict
from reward_server.reward_models.agreement import cohen_kappa
from reward_server.reward_models.reliability import FigureInterval, binomial, calibration_error
from reward_server.scoring.computing import NOT_REPLAYED

BATCH = 16
OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class DecidedLabel:
    """A question that was answered by people and by the judge."""

    part: str
    group: str
    label: bool
    met: bool
    likely: float
    """How likely the judge finds it met; of one that gives no probability, its value."""


@dataclass(slots=True)
class JudgedTalks:
    """All that a judge said, and what it did not say."""

    judge: str
    decided: list[DecidedLabel] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)
    """Questions without a verdict, by kind of failure."""
    talks: int = 0


async def judged(judge: RemoteJudge, talks: Sequence[LabelledTalk], progress: Callable[[int], None]) -> JudgedTalks:
    """The verdicts of a judge on labelled conversations, a batch at a time."""
    tally = JudgedTalks(judge.name, talks=len(talks))
    for start in range(0, len(talks), BATCH):
        part = talks[start : start + BATCH]
        cases = [
            (Case(talk.scenario, talk.transcript, NOT_REPLAYED, OPERATOR), talk.scenario.secrets.rubric.criteria)
            for talk in part
        ]
        for talk, outcome in zip(part, await judge.decide(cases), strict=True):
            if isinstance(outcome, LabsError):
                kind = outcome.kind if isinstance(outcome, JudgeFailed) else outcome.code
                tally.failures[kind] += len(talk.answers)
            else:
                _keep(tally, talk, outcome)
        progress(start + len(part))
    return tally


def _keep(tally: JudgedTalks, talk: LabelledTalk, verdicts: Sequence[Verdict]) -> None:
    for part, label, verdict in zip(talk.parts, talk.answers, verdicts, strict=True):
        if verdict.value is None:
            tally.failures[verdict.status.value] += 1
            continue
        likely = verdict.value if verdict.probability is None else verdict.probability
        tally.decided.append(DecidedLabel(part, talk.group, label, verdict.value > 0.5, likely))


@dataclass(frozen=True, slots=True)
class AgreementFigures:
    """How far the verdicts of a judge are those of people."""

    n: int
    agreement: FigureInterval
    kappa: float
    """Beyond chance; NaN where there is but one answer."""
    met_wrongly: FigureInterval | None
    """Of what people answered with no; None where they never did."""
    missed: FigureInterval | None
    """Of what people answered with yes."""
    calibration: FigureInterval
    """The expected calibration error of its probabilities."""


def agreement_of(decided: Sequence[DecidedLabel]) -> AgreementFigures:
    """The figures of at least one verdict."""
    labels = np.array([answer.label for answer in decided], dtype=np.intp)
    met = np.array([answer.met for answer in decided], dtype=np.intp)
    likely = np.array([answer.likely for answer in decided], dtype=np.float64)
    groups = [answer.group for answer in decided]
    yes, no = int(labels.sum()), int((1 - labels).sum())
    return AgreementFigures(
        n=len(decided),
        agreement=binomial(int((labels == met).sum()), len(decided)),
        kappa=cohen_kappa(labels, met, 2),
        met_wrongly=binomial(int((met * (1 - labels)).sum()), no) if no else None,
        missed=binomial(int((labels * (1 - met)).sum()), yes) if yes else None,
        calibration=calibration_error(likely, labels.astype(np.float64), groups),
    )


def by_part(decided: Sequence[DecidedLabel]) -> Mapping[str, AgreementFigures]:
    """The figures of each part, and of all under `all`."""
    names = list(dict.fromkeys(answer.part for answer in decided if answer.part != "all"))
    parts = {name: agreement_of([answer for answer in decided if answer.part == name]) for name in names}
    return {**(parts if len(parts) > 1 else {}), "all": agreement_of(decided)}


def table(parts: Mapping[str, AgreementFigures]) -> str:
    """A Markdown table, a row per measure and a column per part; 95 % intervals for the last column."""
    names = list(parts)
    lines = [f"| | {' | '.join(names)} | 95 % interval |", f"|---|{'---|' * len(names)}---|"]
    last = parts[names[-1]]

    def share(figure: FigureInterval | None) -> str:
        return "-" if figure is None else f"{figure.value:.0%}"

    def interval(figure: FigureInterval | None) -> str:
        return "-" if figure is None else f"{figure.low:.0%}-{figure.high:.0%}"

    for measure in ("agreement", "met wrongly", "missed"):
        values = [getattr(parts[name], measure.replace(" ", "_")) for name in names]
        lines.append(f"| {measure} | {' | '.join(map(share, values))} | {interval(values[-1])} |")
    lines.append(f"| kappa | {' | '.join(f'{parts[name].kappa:.2f}' for name in names)} | |")
    errors = " | ".join(f"{parts[name].calibration.value:.3f}" for name in names)
    lines.append(f"| calibration error | {errors} | {last.calibration.low:.3f}-{last.calibration.high:.3f} |")
    lines.append(f"| verdicts | {' | '.join(str(parts[name].n) for name in names)} | |")
    return "\n".join(lines)
