"""The panel: routing by kind, `given`, abstentions, and what is accepted from judges that are asked."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from reward_server.judges.base import Case, Evidence, JudgeFailed, Outcome, Verdict, VerdictStatus
from reward_server.judges.cascade import OpenQuestion
from reward_server.judges.panel import Panel
from reward_server.judges.rule import RuleJudge
from reward_server.judges.state import StateJudge
from scenarios.schema import Criterion
from tests.scoring.builders import ASK_PLACE, GOOD, TELL_PLACE, a_case, a_criterion, a_panel

JUDGED = a_criterion({"judge": {"question": "Is the tone calm?"}}, id="tone")


class Oracle:
    """A judge that answers what it was told to answer, or fails."""

    name = "llm"
    version = "test"
    kinds = frozenset({"judge"})

    def __init__(self, *answers: Outcome) -> None:
        self._answers = answers
        self.asked = 0

    async def decide(self, cases: Sequence[tuple[Case, Sequence[Criterion]]]) -> Sequence[Outcome]:
        self.asked += len(cases)
        if not self._answers:
            raise JudgeFailed
        return self._answers


def a_verdict(
    status: VerdictStatus = VerdictStatus.MET,
    value: float | None = 1.0,
    quote: str = ASK_PLACE,
    criterion: str = "tone",
) -> Verdict:
    return Verdict(criterion, status, value, (Evidence(1, "agent", quote),) if quote else (), "llm", "test")


def test_every_kind_has_its_judge() -> None:
    case = a_case(*GOOD)
    criteria = case.scenario.secrets.rubric.criteria
    verdicts = a_panel().compute(case, criteria).verdicts
    assert list(verdicts) == [criterion.id for criterion in criteria]
    assert {v.judge for v in verdicts.values()} == {"state", "rule", "local", "none"}


def test_a_kind_without_a_judge_abstains() -> None:
    verdict = a_panel().compute(a_case(ASK_PLACE, TELL_PLACE), [JUDGED]).verdicts["tone"]
    assert verdict.status is VerdictStatus.ABSTAINED
    assert verdict.value is None


def test_a_criterion_whose_given_facts_are_missing_is_unmet_and_nobody_is_asked() -> None:
    oracle = Oracle((a_verdict(),))
    criterion = a_criterion({"judge": {"question": "?"}}, id="tone", given=["place", "start"])
    verdict = a_panel(oracle).compute(a_case(ASK_PLACE, TELL_PLACE), [criterion]).verdicts["tone"]
    assert verdict.status is VerdictStatus.UNMET
    assert oracle.asked == 0


def test_a_kind_without_a_judge_abstains_although_the_given_facts_are_missing() -> None:
    criterion = a_criterion({"judge": {"question": "?"}}, id="tone", given=["place", "start"])
    verdict = a_panel().compute(a_case(ASK_PLACE, TELL_PLACE), [criterion]).verdicts["tone"]
    assert verdict.status is VerdictStatus.ABSTAINED


def test_a_criterion_to_be_asked_about_is_left_open() -> None:
    judged = a_panel(Oracle((a_verdict(),))).compute(a_case(ASK_PLACE, TELL_PLACE), [JUDGED])
    assert judged.verdicts == {}
    assert [question.criterion.id for question in judged.open] == ["tone"]


async def ask(*answers: Outcome, cases: int = 1) -> list[Outcome]:
    case = a_case(ASK_PLACE, TELL_PLACE)
    return await a_panel(Oracle(*answers)).ask([(case, [OpenQuestion(JUDGED, 0)])] * cases)


@pytest.mark.parametrize(
    "verdict",
    [
        a_verdict(),
        a_verdict(VerdictStatus.PARTIAL, 0.4),
        a_verdict(VerdictStatus.UNMET, 0.0, quote=""),
        a_verdict(VerdictStatus.ABSTAINED, None, quote=""),
    ],
)
async def test_a_sound_verdict_is_accepted(verdict: Verdict) -> None:
    assert await ask((verdict,)) == [(verdict,)]


@pytest.mark.parametrize(
    "answer",
    [
        (),
        (a_verdict(criterion="another"),),
        (a_verdict(), a_verdict()),
        (a_verdict(quote=""),),
        (a_verdict(quote="words that nobody said"),),
        (a_verdict(value=1.5),),
        (a_verdict(value=float("nan")),),
        (a_verdict(value=None),),
        (a_verdict(VerdictStatus.UNMET, 0.7),),
        (a_verdict(VerdictStatus.ABSTAINED, 0.5),),
        (a_verdict(VerdictStatus.MET, 0.5),),
    ],
)
async def test_an_unsound_verdict_is_a_failure_and_never_a_number(answer: Outcome) -> None:
    (outcome,) = await ask(answer)
    assert isinstance(outcome, JudgeFailed)


async def test_a_judge_that_raises_fails_every_case_it_was_asked_about() -> None:
    outcomes = await ask(cases=2)
    assert all(isinstance(outcome, JudgeFailed) for outcome in outcomes)


async def test_one_case_may_fail_alone() -> None:
    good, bad = await ask((a_verdict(),), JudgeFailed(), cases=2)
    assert good == (a_verdict(),)
    assert isinstance(bad, JudgeFailed)


async def test_a_judge_that_answers_for_too_few_cases_has_failed() -> None:
    assert all(isinstance(outcome, JudgeFailed) for outcome in await ask((a_verdict(),), cases=2))


def test_two_judges_for_one_kind_are_refused() -> None:
    with pytest.raises(ValueError, match="same kind"):
        Panel([StateJudge(), StateJudge()])


def test_the_version_names_every_judge() -> None:
    assert a_panel().version == "state=7,rule=7,local=2/words/1"
    assert Panel([StateJudge(), RuleJudge()]).name == "state+rule"
    assert a_panel(Oracle()).version.endswith(",llm=test")
