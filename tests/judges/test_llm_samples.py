"""Several answers, likelihoods and cheaper checks: what they come to."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from reward_server.errors import JudgeFailed
from reward_server.judges.base import Verdict, VerdictStatus
from reward_server.judges.cascade import at_step
from reward_server.judges.reading import JudgeAnswer
from reward_server.llm.base import NO_LOGPROBS_HINT, FailureKind, Question
from tests.judges.asked_model import (
    CALM,
    PLAN,
    QUESTIONS,
    TELLS,
    AskedModel,
    KeptVerdicts,
    Reply,
    a_judge,
    a_judged_case,
    an_answer,
    decided,
    good,
    judged_scenario,
    questions_in,
    says,
    verdicts,
    with_tokens,
)
from tests.scoring.builders import a_panel


async def test_samples_give_a_mean_and_how_far_it_may_be_off() -> None:
    def undecided(question: Question, number: int) -> JudgeAnswer:
        return says(question, concrete=(2, PLAN)) if number != 1 else says(question)

    model = AskedModel(undecided)
    case, criteria = a_judged_case()
    [outcome] = await a_judge(model, samples=4).decide([(case, criteria[-1:])])
    [found] = verdicts(outcome).values()
    assert found.value == 0.75
    assert found.spread == 0.1782  # of Beta(4, 2): sqrt(4 * 2 / (6^2 * 7))
    assert found.status is VerdictStatus.PARTIAL
    assert model.samples == [0, 1, 2, 3]
    assert len({question.seed for question in model.asked}) == 4
    assert {question.temperature for question in model.asked} == {1.0}


async def test_a_single_sample_has_no_spread() -> None:
    assert {v.spread for v in verdicts(await decided(a_judge(good))).values()} == {None}


@pytest.mark.parametrize(("samples", "spread"), [(2, 0.1936), (3, 0.1633), (10, 0.0767)])
@pytest.mark.parametrize("met", [True, False])
async def test_equal_answers_are_no_certainty_and_more_of_them_leave_less_doubt(
    samples: int, spread: float, met: bool
) -> None:
    def sure(question: Question, _number: int) -> JudgeAnswer:
        return says(question, concrete=(2, PLAN)) if met else says(question)

    case, criteria = a_judged_case()
    [outcome] = await a_judge(sure, samples=samples).decide([(case, criteria[-1:])])
    [found] = verdicts(outcome).values()
    assert (found.value, found.spread) == (float(met), spread)  # of Beta(k + 1, 1)


async def test_a_failed_sample_fails_the_case() -> None:
    def flaky(question: Question, number: int) -> Reply:
        return FailureKind.REFUSED if number == 2 else good(question)

    assert isinstance(await decided(a_judge(flaky, samples=3)), JudgeFailed)


@pytest.mark.parametrize(("for_it", "value"), [(1, 0.0), (2, 0.0), (3, 1.0), (4, 1.0)])
async def test_a_failure_criterion_fires_where_more_than_half_of_the_samples_say_so(for_it: int, value: float) -> None:
    def torn(question: Question, number: int) -> JudgeAnswer:
        return says(question, threaten=(1, CALM)) if number < for_it else says(question)

    case, criteria = a_judged_case()
    [outcome] = await a_judge(torn, samples=4).decide([(case, criteria[2:3])])
    [found] = verdicts(outcome).values()
    assert found.value == value
    assert found.status is (VerdictStatus.MET if value else VerdictStatus.UNMET)
    assert (found.spread or 0) > 0


def weighed(answers: JudgeAnswer, *chances: float, **how: Any) -> AskedModel:
    return AskedModel(lambda *_: with_tokens(answers, *chances, **how), has_logprobs=True)


def one_met() -> JudgeAnswer:
    return JudgeAnswer(verdicts=[an_answer("c1", 2, PLAN)])


async def plan_by(model: AskedModel, samples: int = 1) -> Verdict:
    case, criteria = a_judged_case()
    [outcome] = await a_judge(model, samples).decide([(case, criteria[-1:])])
    return verdicts(outcome)["author_plan"]


@pytest.mark.parametrize("spell", ["{}", " {}"])
async def test_log_probabilities_weigh_a_verdict(spell: str) -> None:
    found = await plan_by(weighed(one_met(), 0.8, spell=spell))
    assert found.value == 0.8
    assert found.spread is None
    assert found.judge_version.endswith(";logprobs")


async def test_without_evidence_a_probability_earns_nothing() -> None:
    found = await plan_by(weighed(JudgeAnswer(verdicts=[an_answer("c1")]), 0.4))
    assert found.value == 0.0
    assert found.status is VerdictStatus.UNMET


async def test_where_a_sample_has_evidence_the_doubts_of_the_others_count() -> None:
    def torn(question: Question, number: int) -> Reply:
        answer = one_met() if number == 0 else JudgeAnswer(verdicts=[an_answer("c1")])
        return with_tokens(answer, 0.9 if number == 0 else 0.3)

    found = await plan_by(AskedModel(torn, has_logprobs=True), samples=2)
    assert found.value == 0.6
    assert found.spread == 0.2225  # of Beta(1 + 1.2, 1 + 0.8)


@pytest.mark.parametrize("without", [0, 1])
async def test_an_answer_without_usable_log_probabilities_is_no_verdict_of_a_judge_that_weighs(without: int) -> None:
    def script(_: Question, number: int) -> Reply:
        return one_met() if number == without else with_tokens(one_met(), 0.8)

    case, criteria = a_judged_case()
    store = KeptVerdicts()
    judge = a_judge(model := AskedModel(script, has_logprobs=True), samples=2, store=store)
    with capture_logs() as logs:
        [failed] = await judge.decide([(case, criteria[-1:])])
    assert isinstance(failed, JudgeFailed)
    assert (failed.kind, store.bodies) == ("no_logprobs", {})
    assert [line["hint"] for line in logs if line["event"] == "judge_failed"] == [NO_LOGPROBS_HINT]
    assert len(model.asked) == 2


async def test_a_judge_that_does_not_weigh_asks_for_none_and_says_so() -> None:
    found = await plan_by(model := AskedModel(lambda *_: with_tokens(one_met(), 0.8)))
    assert found.value == 1.0
    assert found.judge_version.endswith(";answers")
    assert not any(question.logprobs for question in model.asked)


async def test_by_what_a_judge_weighs_is_settled_when_it_is_made() -> None:
    class Forgetful(AskedModel):
        """A model that would say something else the second time."""

        @property
        def has_logprobs(self) -> bool:
            said, self._has_logprobs = self._has_logprobs, False
            return said

    judge = a_judge(model := Forgetful(lambda *_: with_tokens(one_met(), 0.8), has_logprobs=True))
    assert (version := judge.version).endswith(";logprobs")
    case, criteria = a_judged_case()
    [outcome] = await judge.decide([(case, criteria[-1:])])
    assert verdicts(outcome)["author_plan"].value == 0.8
    assert {verdict.judge_version for verdict in verdicts(outcome).values()} == {version} == {judge.version}
    assert all(question.logprobs for question in model.asked)


def unsure(name: str, question: str) -> dict[str, Any]:
    """A criterion that a rule decides half-heartedly, with a language model to fall back on."""
    return {
        "id": name,
        "family": "rubrics",
        "dimension": "D1_Discovery",
        "points": 1,
        "check": {"similar": {"exemplars": ["I am listening."], "floor": 0.01, "full": 0.99}},
        "fallback": [{"unsure": [0.05, 0.95], "check": {"judge": {"question": question}}}],
    }


async def test_what_is_fallen_back_on_is_asked_apart_and_always_together() -> None:
    spare = [unsure("author_one", "Does the agent give time?"), unsure("author_two", "Is it slow?")]
    scenario = judged_scenario([*QUESTIONS, *spare])
    case, _ = a_judged_case(scenario=scenario)
    by_id = {criterion.id: criterion for criterion in scenario.secrets.rubric.criteria}
    wanted = [at_step(by_id["author_one"], 1), at_step(by_id["author_two"], 1), by_id["author_calm"]]
    model = AskedModel(good)
    judge = a_judge(model)
    outcomes = [(await judge.decide([(case, [criterion])]))[0] for criterion in wanted]
    assert [verdicts(outcome).keys() for outcome in outcomes] == [{criterion.id} for criterion in wanted]
    assert [[each["question"] for each in questions_in(question)] for question in model.asked] == [
        ["Does the agent give time?", "Is it slow?"],
        [QUESTIONS[n]["check"]["judge"]["question"] for n in range(3)],
    ]


async def test_a_cascade_asks_only_where_the_rule_was_unsure() -> None:
    scenario = judged_scenario([unsure("author_one", "Does the agent give time?")])
    model = AskedModel(good)
    panel = a_panel(a_judge(model))
    case, _ = a_judged_case(scenario=scenario)
    [criterion] = [c for c in scenario.secrets.rubric.criteria if c.id == "author_one"]
    computed = panel.compute(case, [criterion])
    assert [question.criterion.id for question in computed.open] == ["author_one"]
    [outcome] = await panel.ask([(case, computed.open)])
    assert verdicts(outcome)["author_one"].judge == "llm"
    sure, _ = a_judged_case("Where does the water come in?", TELLS, scenario=scenario)
    assert panel.compute(sure, [criterion]).open == ()
