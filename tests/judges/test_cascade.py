"""Fallbacks: the dear judge is asked only where the cheap one is unsure, and a failure stays one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from reward_server.errors import BudgetExhausted
from reward_server.judges.base import Case, Evidence, Finding, JudgeFailed, Outcome, Verdict, VerdictStatus
from reward_server.judges.base import verdict as verdict_on
from reward_server.judges.cascade import OpenQuestion, route
from reward_server.judges.panel import Panel
from reward_server.judges.rule import RuleJudge
from reward_server.judges.state import StateJudge
from scenarios.schema import Criterion
from tests.scoring.builders import ASK_PLACE, TELL_PLACE, a_case, a_criterion

CASE = a_case(ASK_PLACE, TELL_PLACE)
JUDGE = {"judge": {"question": "Is the tone calm?"}}
SIMILAR = {"similar": {"exemplars": ["Where does it come in?"]}}


class Likeness:
    """Decides `similar` checks with the value it was given; None abstains."""

    name = "local"
    version = "1"
    kinds = frozenset({"similar"})

    def __init__(self, value: float | None) -> None:
        self.value = value
        self.calls = 0

    def decide(self, case: Case, criterion: Criterion) -> Verdict:
        self.calls += 1
        assert criterion.fallback == ()
        if self.value is None:
            return Verdict(criterion.id, VerdictStatus.ABSTAINED, None, (), self.name, self.version)
        return verdict_on(self, criterion, Finding(self.value, (Evidence(1, "agent", ASK_PLACE),)))


class Model:
    """A judge to be asked, counting; answers with a value, abstains (None) or fails."""

    version = "1"

    def __init__(self, answer: float | Exception | None, kind: str = "judge", name: str = "llm") -> None:
        self.name = name
        self.kinds = frozenset({kind})
        self.answer = answer
        self.asked: list[list[str]] = []

    async def decide(self, cases: Sequence[tuple[Case, Sequence[Criterion]]]) -> Sequence[Outcome]:
        self.asked += [[criterion.id for criterion in criteria] for _, criteria in cases]
        assert all(route(criterion.check) in self.kinds for _, criteria in cases for criterion in criteria)
        if isinstance(self.answer, JudgeFailed | BudgetExhausted):
            return [self.answer for _ in cases]
        return [tuple(self._one(criterion) for criterion in criteria) for _, criteria in cases]

    def _one(self, criterion: Criterion) -> Verdict:
        assert not isinstance(self.answer, Exception)
        if self.answer is None:
            return Verdict(criterion.id, VerdictStatus.ABSTAINED, None, (), self.name, self.version)
        return verdict_on(self, criterion, Finding(self.answer, (Evidence(1, "agent", ASK_PLACE),)))


def a_cascade(*steps: dict[str, Any], first: dict[str, Any] = SIMILAR, **changes: Any) -> Criterion:
    fallback = [{"unsure": [0.3, 0.7], "check": step} for step in steps]
    return a_criterion(first, **{"id": "tone", "fallback": fallback, **changes})


async def outcome_of(panel: Panel, *criteria: Criterion) -> Outcome:
    judged = panel.compute(CASE, criteria)
    (answer,) = await panel.ask([(CASE, judged.open)])
    if not isinstance(answer, tuple):
        return answer
    found = {**judged.verdicts, **{verdict.criterion_id: verdict for verdict in answer}}
    return tuple(found[criterion.id] for criterion in criteria)


async def decided(panel: Panel, criterion: Criterion) -> Verdict:
    outcome = await outcome_of(panel, criterion)
    assert isinstance(outcome, tuple)
    return outcome[0]


@pytest.mark.parametrize(
    ("value", "asks"), [(0.0, 0), (0.29, 0), (0.3, 1), (0.5, 1), (0.7, 1), (0.71, 0), (1.0, 0), (None, 1)]
)
async def test_the_model_is_asked_only_where_the_cheap_judge_is_unsure(value: float | None, asks: int) -> None:
    model = Model(1.0)
    verdict = await decided(Panel([Likeness(value)], [model]), a_cascade(JUDGE))
    assert len(model.asked) == asks
    assert (verdict.judge, verdict.value) == (("llm", 1.0) if asks else ("local", value))


async def test_a_doubt_that_nobody_can_settle_leaves_what_was_decided() -> None:
    assert (await decided(Panel([Likeness(0.5)]), a_cascade(JUDGE))).value == 0.5
    assert (await decided(Panel([Likeness(0.5)], [Model(None)]), a_cascade(JUDGE))).value == 0.5
    assert (await decided(Panel([Likeness(None)], [Model(None)]), a_cascade(JUDGE))).status is VerdictStatus.ABSTAINED
    assert (await decided(Panel([Likeness(None)]), a_cascade(JUDGE))).status is VerdictStatus.ABSTAINED


@pytest.mark.parametrize("failure", [JudgeFailed(), BudgetExhausted()])
async def test_a_model_that_fails_is_a_failure_though_the_cheap_judge_had_a_number(failure: Exception) -> None:
    assert await outcome_of(Panel([Likeness(0.5)], [Model(failure)]), a_cascade(JUDGE)) is failure


async def test_a_step_without_a_judge_is_passed_over() -> None:
    model = Model(0.0)
    plugin = {"plugin": {"name": "manners"}}
    verdict = await decided(Panel([Likeness(0.5)], [model]), a_cascade(plugin, JUDGE))
    assert (verdict.judge, verdict.value) == ("llm", 0.0)
    assert await decided(Panel([], [model]), a_cascade(JUDGE)) == verdict


async def test_steps_follow_each_other_until_one_is_sure() -> None:
    plugin = {"plugin": {"name": "manners"}}
    for first, then, asked in ((0.5, 0.5, True), (0.5, 0.9, False)):
        cheap, middle, dear = Likeness(first), Model(then, "plugin:manners", "manners"), Model(1.0)
        verdict = await decided(Panel([cheap], [middle, dear]), a_cascade(plugin, JUDGE))
        assert (len(middle.asked), len(dear.asked)) == (1, int(asked))
        assert verdict.judge == ("llm" if asked else "manners")
    cheap, middle = Likeness(0.9), Model(0.5, "plugin:manners", "manners")
    verdict = await decided(Panel([cheap], [middle]), a_cascade(SIMILAR, first=plugin))
    assert (verdict.judge, cheap.calls) == ("local", 1)


async def test_one_call_carries_all_that_is_open_of_a_case() -> None:
    model = Model(1.0)
    criteria = [
        a_cascade(JUDGE, id="first"),
        a_criterion(JUDGE, id="second"),
        a_criterion({"elicited": {"facts": ["place"]}}, id="third"),
        a_cascade(JUDGE, id="fourth"),
    ]
    outcome = await outcome_of(Panel([StateJudge(), RuleJudge(), Likeness(0.5)], [model]), *criteria)
    assert isinstance(outcome, tuple)
    assert [verdict.criterion_id for verdict in outcome] == ["first", "second", "third", "fourth"]
    assert model.asked == [["first", "second", "fourth"]]


async def test_nobody_is_asked_where_what_must_be_given_is_missing() -> None:
    cheap, model = Likeness(0.5), Model(1.0)
    verdict = await decided(Panel([cheap], [model]), a_cascade(JUDGE, given=["start"]))
    assert (verdict.status, cheap.calls, model.asked) == (VerdictStatus.UNMET, 0, [])


async def test_cases_go_their_own_ways() -> None:
    model = Model(1.0)
    question = OpenQuestion(a_criterion(JUDGE, id="tone"), 0)
    outcomes = await Panel([], [model]).ask([(CASE, [question]), (CASE, []), (CASE, [question])])
    assert [len(outcome) for outcome in outcomes if isinstance(outcome, tuple)] == [1, 0, 1]
    assert len(model.asked) == 2
