"""The panel: sends each criterion to the judge for its kind and checks what comes back.

A criterion whose `given` facts were not elicited is unmet without asking anyone. A kind that no judge
here decides abstains; that is visible to the operator and never guessed. A verdict from outside that
does not fit the question or cites words nobody said is a failure of that judge, not a verdict. Where a
criterion has fallbacks, the next judge is asked only where the one before is unsure (`cascade`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from personas.case.schema import all_hold
from reward_server.errors import BudgetExhausted, LabsError
from reward_server.judges.base import Case, ComputedJudge, JudgeFailed, Outcome, RemoteJudge, Verdict, VerdictStatus
from reward_server.judges.cascade import OpenQuestion, at_step, better, check_at, route, settles
from reward_server.judges.soundness import is_sound
from scenarios.schema import Criterion

Verdicts = Mapping[str, Verdict]
"""By criterion id."""


@dataclass(frozen=True, slots=True)
class PanelResult:
    """The verdicts that could be computed, and the questions that are left."""

    verdicts: Verdicts
    open: tuple[OpenQuestion, ...]


class Panel:
    """All judges of this server, at most one per kind of check."""

    def __init__(self, computed: Sequence[ComputedJudge], asked: Sequence[RemoteJudge] = ()) -> None:
        self._computed = {kind: judge for judge in computed for kind in judge.kinds}
        self._asked = {kind: judge for judge in asked for kind in judge.kinds}
        everyone = (*computed, *asked)
        kinds = [kind for judge in everyone for kind in judge.kinds]
        if len(kinds) != len(set(kinds)):
            raise ValueError("two judges decide the same kind of check")
        self._judges = everyone

    @property
    def name(self) -> str:
        """The names of the judges, for the metadata of an evaluation."""
        return "+".join(judge.name for judge in self._judges)

    @property
    def version(self) -> str:
        """Names and versions of all judges; part of the scoring version."""
        return ",".join(f"{judge.name}={judge.version}" for judge in self._judges)

    def plugin_problem(self, criteria: Iterable[Criterion]) -> str | None:
        """The reason why the checks of plug-ins among the criteria cannot be decided here; None when they can."""
        for check in (check for criterion in criteria for check in criterion.checks):
            wanted = check.plugin
            if wanted is None:
                continue
            judge = self._computed.get(route(check)) or self._asked.get(route(check))
            if judge is None:
                return f"needs the judge `{wanted.name}`, which this server lacks"
            refuses = getattr(judge, "refuses", None)
            if refuses is not None and refuses(wanted.options):
                return f"gives the judge `{wanted.name}` options that it refuses"
        return None

    def compute(self, case: Case, criteria: Sequence[Criterion]) -> PanelResult:
        """Everything that can be decided here and now; blocking. The rest is to be asked.

        Raises:
            JudgeFailed: a computed judge of a plug-in failed.
        """
        verdicts: dict[str, Verdict] = {}
        questions: list[OpenQuestion] = []
        for criterion in criteria:
            if not all_hold(criterion.given, case.record.elicited):
                unmet = Verdict(criterion.id, VerdictStatus.UNMET, 0.0, (), "state", "given")
                verdicts[criterion.id] = unmet if self._is_known(criterion) else _abstained(criterion)
            else:
                decided = self._decide(case, OpenQuestion(criterion, 0))
                if isinstance(decided, OpenQuestion):
                    questions.append(decided)
                else:
                    verdicts[criterion.id] = decided
        return PanelResult(verdicts, tuple(questions))

    async def ask(self, cases: Sequence[tuple[Case, Sequence[OpenQuestion]]]) -> list[Outcome]:
        """Per case the verdicts on its open questions, in their order, or the failure."""
        states = [_State(case, list(questions)) for case, questions in cases]
        while any(state.open for state in states):
            # A round: each judge is asked once, about everything that waits for it.
            judges = dict.fromkeys(self._asked[q.route] for state in states for q in state.open)
            await asyncio.gather(*(self._round(judge, states) for judge in judges))
        return [state.outcome for state in states]

    def _is_decided(self, kind: str) -> bool:
        return kind in self._computed or kind in self._asked

    def _is_known(self, criterion: Criterion) -> bool:
        return any(self._is_decided(route(check_at(criterion, i))) for i in range(1 + len(criterion.fallback)))

    def _decide(self, case: Case, question: OpenQuestion) -> Verdict | OpenQuestion:
        """Goes from step to step until one settles it or somebody has to be asked; blocking."""
        criterion, standing = question.criterion, question.standing
        for step in range(question.step, 1 + len(criterion.fallback)):
            kind = route(check_at(criterion, step))
            if kind in self._asked:
                return OpenQuestion(criterion, step, standing)
            if kind in self._computed:
                finding = self._computed[kind].decide(case, at_step(criterion, step))
                standing = better(standing, finding)
                if settles(criterion, step, finding):
                    break
        return standing or _abstained(criterion)

    async def _round(self, judge: RemoteJudge, states: Sequence[_State]) -> None:
        batch = [(state, mine) for state in states if (mine := [q for q in state.open if q.route in judge.kinds])]
        answers = await _asked(judge, [(state.case, [q.asked for q in mine]) for state, mine in batch])
        for (state, mine), answer in zip(batch, answers, strict=True):
            accepted = _accepted(state.case, [q.asked for q in mine], answer)
            if isinstance(accepted, LabsError):
                state.failure = state.failure or accepted
                continue
            for question, verdict in zip(mine, accepted, strict=True):
                await self._settle(state, question, verdict)

    async def _settle(self, state: _State, question: OpenQuestion, verdict: Verdict) -> None:
        """Keep a verdict, or go on to the next step."""
        criterion, standing = question.criterion, better(question.standing, verdict)
        outcome: Verdict | OpenQuestion = standing
        if not settles(criterion, question.step, verdict) and question.step < len(criterion.fallback):
            following = OpenQuestion(criterion, question.step + 1, standing)
            try:
                # A cheap check behind one that is asked is unusual, but it may run a model.
                outcome = await asyncio.to_thread(self._decide, state.case, following)
            except JudgeFailed as failure:
                state.failure = state.failure or failure
        state.slots[state.slots.index(question)] = outcome


class _State:
    """The questions of one case, and how far they have come."""

    def __init__(self, case: Case, questions: Sequence[OpenQuestion]) -> None:
        self.case = case
        self.slots: list[OpenQuestion | Verdict] = list(questions)
        self.failure: LabsError | None = None

    @property
    def open(self) -> list[OpenQuestion]:
        """The questions that are still to be asked; nothing once anything has failed."""
        return [] if self.failure else [slot for slot in self.slots if isinstance(slot, OpenQuestion)]

    @property
    def outcome(self) -> Outcome:
        """The verdicts, or the failure."""
        return self.failure or tuple(slot for slot in self.slots if isinstance(slot, Verdict))


def _abstained(criterion: Criterion) -> Verdict:
    return Verdict(criterion.id, VerdictStatus.ABSTAINED, None, (), "none", "1")


async def _asked(judge: RemoteJudge, cases: Sequence[tuple[Case, Sequence[Criterion]]]) -> Sequence[Outcome]:
    try:
        answers = await judge.decide(cases)
    except (JudgeFailed, BudgetExhausted) as failure:
        return [failure] * len(cases)
    return answers if len(answers) == len(cases) else [JudgeFailed()] * len(cases)


def _accepted(case: Case, criteria: Sequence[Criterion], answer: Outcome) -> Outcome:
    """The answer if it decides what was asked, within range, on evidence that exists; else a failure."""
    if isinstance(answer, LabsError):
        return answer
    if len(answer) != len(criteria):
        return JudgeFailed()
    sound = all(is_sound(case, criterion, verdict) for criterion, verdict in zip(criteria, answer, strict=True))
    return answer if sound else JudgeFailed()
