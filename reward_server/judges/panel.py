"""The panel: sends each criterion to the judge for its kind and checks what comes back.

A criterion whose `given` facts were not elicited is unmet without asking anyone. A kind that no judge
here decides abstains; that is visible to the operator and never guessed. A verdict from outside that
does not fit the question or cites words nobody said is a failure of that judge, not a verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reward_server.errors import LabsError
from reward_server.judges.base import (
    AskedJudge,
    Case,
    ComputedJudge,
    JudgeFailed,
    Outcome,
    Status,
    Verdict,
    occurs,
)
from scenarios.schema import Criterion

Verdicts = Mapping[str, Verdict]
"""By criterion id."""


class Panel:
    """All judges of this server, at most one per kind of check."""

    def __init__(self, computed: Sequence[ComputedJudge], asked: Sequence[AskedJudge] = ()) -> None:
        self._computed = {kind: judge for judge in computed for kind in judge.kinds}
        self._asked = {kind: judge for judge in asked for kind in judge.kinds}
        everyone = (*computed, *asked)
        kinds = [kind for judge in everyone for kind in judge.kinds]
        if len(kinds) != len(set(kinds)):
            raise ValueError("two judges decide the same kind of check")
        self._judges = everyone

    @property
    def name(self) -> str:
        """What decides here, for the metadata of an evaluation."""
        return "+".join(judge.name for judge in self._judges)

    @property
    def version(self) -> str:
        """Names and versions of all judges; part of the scoring version."""
        return ",".join(f"{judge.name}={judge.version}" for judge in self._judges)

    def compute(self, case: Case, criteria: Sequence[Criterion]) -> Verdicts:
        """Everything that can be decided here and now; blocking. The rest is `open_questions`."""
        verdicts: dict[str, Verdict] = {}
        for criterion in criteria:
            kind = criterion.check.kind
            if kind not in self._computed and kind not in self._asked:
                verdicts[criterion.id] = Verdict(criterion.id, Status.ABSTAINED, None, (), "none", "1")
            elif any(fact not in case.record.elicited for fact in criterion.given):
                verdicts[criterion.id] = Verdict(criterion.id, Status.UNMET, 0.0, (), "state", "given")
            elif kind in self._computed:
                verdicts[criterion.id] = self._computed[kind].decide(case, criterion)
        return verdicts

    async def ask(self, cases: Sequence[tuple[Case, Sequence[Criterion]]]) -> list[Outcome]:
        """Per case the verdicts on its open criteria, which all have a judge to be asked, or the failure."""
        outcomes: list[Outcome] = [() for _ in cases]
        for judge in dict.fromkeys(self._asked.values()):
            batch = [
                (index, case, wanted)
                for index, (case, criteria) in enumerate(cases)
                if (wanted := [c for c in criteria if c.check.kind in judge.kinds])
            ]
            answers = await _asked(judge, [(case, wanted) for _, case, wanted in batch]) if batch else []
            for (index, case, wanted), answer in zip(batch, answers, strict=True):
                outcomes[index] = _together(outcomes[index], _accepted(case, wanted, answer))
        return outcomes


async def _asked(judge: AskedJudge, cases: Sequence[tuple[Case, Sequence[Criterion]]]) -> Sequence[Outcome]:
    try:
        answers = await judge.decide(cases)
    except JudgeFailed as failure:
        return [failure] * len(cases)
    return answers if len(answers) == len(cases) else [JudgeFailed()] * len(cases)


def _together(earlier: Outcome, answer: Outcome) -> Outcome:
    if isinstance(earlier, LabsError):
        return earlier
    return answer if isinstance(answer, LabsError) else (*earlier, *answer)


def _accepted(case: Case, criteria: Sequence[Criterion], answer: Outcome) -> Outcome:
    """The answer if it decides what was asked, within range, on evidence that exists; else a failure."""
    if isinstance(answer, LabsError):
        return answer
    if [verdict.criterion_id for verdict in answer] != [criterion.id for criterion in criteria]:
        return JudgeFailed()
    return answer if all(_sound(case, verdict) for verdict in answer) else JudgeFailed()


def _sound(case: Case, verdict: Verdict) -> bool:
    if verdict.status is Status.ABSTAINED:
        return verdict.value is None
    if verdict.value is None or not 0.0 <= verdict.value <= 1.0:
        return False
    if verdict.value == 0.0:
        return verdict.status is Status.UNMET
    fits = verdict.status is (Status.MET if verdict.value == 1.0 else Status.PARTIAL)
    return fits and bool(verdict.evidence) and occurs(case.transcript, verdict.evidence)
