"""A conversation is judged once, under a key that has everything that matters."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from reward_server.errors import BudgetExhausted, JudgeFailed
from reward_server.judges.reading import JudgeAnswer
from reward_server.llm.base import FailureKind, Question
from tests.judges.asked_model import (
    CALM,
    PLAN,
    QUESTIONS,
    TELLS,
    AskedModel,
    KeptVerdicts,
    a_judge,
    a_judged_case,
    asked_of,
    decided,
    good,
    judged_scenario,
    questions_in,
    says,
    verdicts,
    with_tokens,
)
from tests.scoring.builders import a_case


async def test_a_transcript_is_judged_once_and_outlives_the_process() -> None:
    store, model = KeptVerdicts(), AskedModel(good)
    first = await decided(a_judge(model, store=store))
    again = await decided(a_judge(model, store=store))
    assert first == again
    assert len(model.asked) == 2


@pytest.mark.parametrize("change", ["model", "samples", "question", "transcript", "scenario", "version", "logprobs"])
async def test_whatever_matters_makes_another_key(change: str) -> None:
    store = KeptVerdicts()
    await a_judge(good, store=store).decide([a_judged_case()])
    before = set(store.bodies)
    criteria = [{**each} for each in QUESTIONS]
    criteria[0]["check"] = {"judge": {"question": "Does the agent take time to talk?"}}
    criteria[3]["check"] = {"judge": {"question": "Is a concrete step named?"}}
    scenario = judged_scenario(criteria) if change == "question" else judged_scenario()
    if change == "version":
        scenario = type(scenario)(
            scenario.collection, scenario.card, 2, scenario.secrets, scenario.case, scenario.topics, scenario.foreign
        )
    if change == "scenario":
        card = scenario.card.model_copy(update={"description": "Another roof."})
        scenario = type(scenario)(
            scenario.collection, card, 1, scenario.secrets, scenario.case, scenario.topics, scenario.foreign
        )
    said = (CALM, "Everything is dry in here.", PLAN, "Thanks.") if change == "transcript" else ()
    weighs = change == "logprobs"
    model = AskedModel(
        lambda question, _: (
            with_tokens(good(question), *[0.5] * len(questions_in(question))) if weighs else good(question)
        ),
        version="memory/2" if change == "model" else "memory/1",
        has_logprobs=weighs,
    )
    judge = a_judge(model, samples=2 if change == "samples" else 1, store=store)
    await judge.decide([a_judged_case(*said, scenario=scenario)])
    assert before.isdisjoint(set(store.bodies) - before)
    assert len(store.bodies) == 2 * len(before)


async def test_a_criterion_that_became_a_failure_is_judged_anew() -> None:
    store, model = (
        KeptVerdicts(),
        AskedModel(lambda question, n: says(question, push=(1, CALM)) if n % 2 else says(question)),
    )
    case, criteria = a_judged_case()
    await a_judge(model, samples=2, store=store).decide([(case, criteria[:3])])
    changed = [{**each} for each in QUESTIONS]
    changed[1] |= {"family": "failure_metrics", "cap": 0.3}
    scenario = judged_scenario(changed)
    [outcome] = await a_judge(model, samples=2, store=store).decide(
        [(a_case(CALM, TELLS, PLAN, "Thank you so much, that helps.", scenario=scenario), asked_of(scenario)[:3])]
    )
    assert verdicts(outcome)["author_pushy"].value == 0.0
    assert len(model.asked) == 4


async def test_failures_are_not_kept() -> None:
    store = KeptVerdicts()
    assert isinstance(await decided(a_judge(lambda *_: FailureKind.REFUSED, store=store)), JudgeFailed)
    assert store.bodies == {}
    assert verdicts(await decided(a_judge(good, store=store)))["author_calm"].value == 1.0


@pytest.mark.parametrize(
    "damage",
    [
        "no json",
        "null",
        "[]",
        "{}",
        '[{"value": 7.0, "spread": null, "evidence": []}]',
        '[{"value": 1.0, "spread": null, "evidence": [[1, "Nobody said this."]]}]',
        '[{"value": 1.0, "spread": null, "evidence": []}]',
        '[{"value": NaN, "spread": null, "evidence": []}]',
        '[{"value": 0.5, "spread": -1.0, "evidence": [[1, "Take your time"]]}]',
    ],
)
async def test_a_damaged_entry_is_not_there(damage: str) -> None:
    store, model = KeptVerdicts(), AskedModel(good)
    case, criteria = a_judged_case()
    await a_judge(model, store=store).decide([(case, criteria[-1:])])
    store.bodies = dict.fromkeys(store.bodies, damage)
    [outcome] = await a_judge(model, store=store).decide([(case, criteria[-1:])])
    assert verdicts(outcome)["author_plan"].value == 1.0
    assert len(model.asked) == 2


@pytest.mark.parametrize(("other", "questions"), [("acme", 1), ("umbrella", 2)])
async def test_who_asks_the_same_at_once_gets_the_same_verdict(other: str, questions: int) -> None:
    def first_yes(question: Question, number: int) -> JudgeAnswer:
        return says(question, concrete=(2, PLAN)) if number == 0 else says(question)

    case, criteria = a_judged_case()
    cases = [(replace(case, lab_id=lab), criteria[-1:]) for lab in ("acme", other)]
    model = AskedModel(first_yes)
    # Nobody is answered before all have asked: transcripts are read in threads, one of which may be done first.
    model.gate.clear()
    model.awaited = questions
    deciding = asyncio.create_task(a_judge(model).decide(cases))
    await asyncio.wait_for(model.arrived.wait(), 10)
    model.gate.set()
    outcomes = await deciding
    assert outcomes[0] == outcomes[1]
    assert len(model.asked) == questions


async def test_who_waits_for_the_same_failure_is_told_the_same() -> None:
    model = AskedModel(lambda *_: BudgetExhausted(retry_after_s=77))
    outcomes = await a_judge(model).decide([a_judged_case()] * 2)
    assert [type(outcome) for outcome in outcomes] == [BudgetExhausted] * 2
    assert {outcome.retry_after_s for outcome in outcomes} == {77}  # type: ignore[union-attr]
