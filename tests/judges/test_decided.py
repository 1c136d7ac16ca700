"""The judge that asks a decision model: verdict, probability, threshold and a quote that the code finds."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from typing import Any

import pytest

from reward_server.decisions.questions import AnswerProbabilities, ChoiceQuestion, Typed, YesNoQuestion
from reward_server.errors import JudgeFailed
from reward_server.judges.base import VerdictStatus
from reward_server.judges.decided import DecisionJudge
from reward_server.judges.decided_pair import DecidedPairs
from reward_server.judges.pairwise import PairwisePreference
from reward_server.llm.base import FailureKind
from tests.decisions.asked_decider import MemoryDecider, picks, yes
from tests.judges.asked_model import a_judged_case, decided, verdicts


def calm(name: str, question: Typed, state: Any) -> AnswerProbabilities | None:
    if isinstance(question, YesNoQuestion):
        return yes(0.8 if "give the tenant time" in question.asks else 0.1)
    return picks(question, question.labels[1])


def judge(says: Any = calm, threshold: float = 0.5) -> tuple[MemoryDecider, DecisionJudge]:
    decider = MemoryDecider(says)
    return decider, DecisionJudge(decider, threshold)


async def test_a_criterion_is_a_question_with_probability_and_a_quote_from_the_transcript() -> None:
    decider, asked = judge()
    found = verdicts(await decided(asked))
    met = found["author_calm"]
    assert (met.status, met.value, met.probability) == (VerdictStatus.MET, 1.0, 0.8)
    assert met.spread == round(math.sqrt(0.8 * 0.2), 4)
    [evidence] = met.evidence
    case, _ = a_judged_case()
    assert evidence.quote in case.transcript.said_by("agent", evidence.turn)
    assert (found["author_plan"].status, found["author_plan"].probability) == (VerdictStatus.UNMET, 0.1)
    assert found["author_plan"].evidence == ()
    assert len(decider.asked) == 2, "all questions of the rubric at once, then the quotes of those that are met"
    assert len(decider.asked[0][1]) == 4
    [quoted] = decider.asked[1][1].values()
    assert isinstance(quoted, ChoiceQuestion)
    assert met.to_json()["probability"] == 0.8


async def test_the_threshold_decides_and_is_part_of_the_version() -> None:
    _, strict = judge(threshold=0.81)
    assert verdicts(await decided(strict))["author_calm"].status is VerdictStatus.UNMET
    assert strict.version != judge()[1].version
    assert strict.version.startswith("memory/m@1;")


@pytest.mark.parametrize("kind", [FailureKind.MISSING, FailureKind.REFUSED, FailureKind.NOT_FINITE, FailureKind.RESET])
@pytest.mark.parametrize("of", [YesNoQuestion, ChoiceQuestion])
async def test_a_failure_of_any_question_is_an_error_with_its_kind_and_no_number(
    kind: FailureKind, of: type[Typed]
) -> None:
    def says(name: str, question: Typed, state: Any) -> AnswerProbabilities | FailureKind | None:
        return kind if isinstance(question, of) else calm(name, question, state)

    failed = await decided(judge(says)[1])
    assert isinstance(failed, JudgeFailed)
    assert failed.kind == kind.value


async def test_the_agents_words_are_data_and_no_part_of_a_question() -> None:
    decider, asked = judge()
    await decided(asked)
    state, questions = decider.asked[0]
    said = state["conversation"][1]["agent"]
    assert said
    assert not [each for each in questions.values() if said[:20] in each.asks]


def transcripts() -> Any:
    case, _ = a_judged_case()
    other = replace(case.transcript, turns=case.transcript.turns[:1])
    return case.scenario, case.transcript, other


async def compared(says: Any, swap: bool = False) -> tuple[PairwisePreference, MemoryDecider]:
    scenario, a, b = transcripts()
    decider = MemoryDecider(says)
    criteria = scenario.secrets.rubric.criteria
    pair = (b, a) if swap else (a, b)
    return await DecidedPairs(decider).compare(scenario, criteria, *pair, "acme"), decider


def longer(name: str, question: Typed, state: Any) -> AnswerProbabilities:
    return picks(question, "X" if len(state["X"]) > len(state["Y"]) else "Y")


async def test_a_pair_is_decided_in_both_orders_and_swapping_swaps_the_winner() -> None:
    found, decider = await compared(longer)
    assert found == PairwisePreference("a", consistent=True)
    assert len(decider.asked) == 2
    assert decider.asked[0][0]["X"] == decider.asked[1][0]["Y"]
    assert (await compared(longer, swap=True))[0] == PairwisePreference("b", consistent=True)


async def test_a_preference_for_a_place_is_no_win() -> None:
    assert (await compared(lambda n, q, s: picks(q, "X")))[0] == PairwisePreference("tie", consistent=False)
    assert (await compared(lambda n, q, s: picks(q, "neither")))[0] == PairwisePreference("tie", consistent=True)


async def test_a_pair_that_is_not_decided_is_an_error() -> None:
    with pytest.raises(JudgeFailed) as caught:
        await compared(lambda n, q, s: FailureKind.TIMEOUT)
    assert caught.value.kind == "timeout"
    await asyncio.sleep(0)
