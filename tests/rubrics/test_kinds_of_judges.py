"""The logs come out in order with each kind of judge that is configured: rules, a decision or language model, both."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from personas.reading.matcher import Matcher
from reward_server.decisions.questions import AnswerProbabilities, ChoiceQuestion, Typed, YesNoQuestion
from reward_server.errors import JudgeFailed, NotFound
from reward_server.judges.base import Case, RemoteJudge
from reward_server.judges.decided import DecisionJudge
from reward_server.judges.estimate import Estimate
from reward_server.judges.llm import LlmJudge
from reward_server.judges.reading import CriterionAnswer, JudgeAnswer
from reward_server.judges.verdict_cache import VerdictCache
from reward_server.llm.base import FailureKind, Question
from reward_server.scoring.disclosure import FULL_DISCLOSURE
from reward_server.scoring.request import ScoreRequest
from reward_server.scoring.scored import Scored, Unscored
from reward_server.scoring.scorer import Scorer
from reward_server.server.engine import ExtraJudges, build_scorer, load_matcher
from reward_server.settings import Settings
from scenarios.given import rubric_of_data
from scenarios.library import NO_SCENARIOS
from tests.contract.house import packaged_reader
from tests.decisions.asked_decider import MemoryDecider, picks, yes
from tests.judges.asked_model import AskedModel
from tests.rubrics.talks import EMPTY, JUDGED, LOGS, ORDER, RUBRIC
from trainer_client.wire import Message

SHOWS = {
    "brake itself": "pads last changed",
    "name a day": "it in tomorrow morning",
    "not to ride": "leave the bike at home",
}
ALSO = {"brake itself": "pads of that brake", "name a day": "by on Friday"}
"""What a reader of the logs would find: the words in them that answer each question with yes."""


@pytest.fixture(scope="module")
def matcher() -> Matcher:
    return load_matcher(Settings())


@pytest.fixture(scope="module")
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def shown_by(asked: str, said: Sequence[tuple[int, str]]) -> tuple[int, str] | None:
    """The agent turn that answers a question with yes."""
    for topic, words in SHOWS.items():
        if topic in asked:
            wanted = [words, *([ALSO[topic]] if topic in ALSO else [])]
            return next(((turn, each) for turn, text in said for each in wanted if each in text), None)
    return None


def decides(_: str, question: Typed, state: Any) -> AnswerProbabilities:
    said = [(turn["turn"], turn["agent"]) for turn in state["conversation"] if "agent" in turn]
    if isinstance(question, YesNoQuestion):
        return yes(0.9 if shown_by(question.asks, said) else 0.1)
    assert isinstance(question, ChoiceQuestion)
    return picks(question, question.labels[0])


def answers(question: Question, number: int) -> JudgeAnswer:
    turns = next(json.loads(line) for line in question.user.splitlines() if line.startswith("[{"))
    said = [(turn["turn"], turn["agent"]) for turn in turns if "agent" in turn]
    asked = [json.loads(line) for line in question.system.partition("The questions:\n")[2].splitlines()]
    verdicts = []
    for each in asked:
        found = shown_by(each["question"], said)
        turn, quote = found or (None, "")
        verdicts.append(
            CriterionAnswer(id=each["id"], reason="It shows.", turn=turn, quote=quote, met=found is not None)
        )
    return JudgeAnswer(verdicts=verdicts)


def scorer_of(matcher: Matcher, threads: ThreadPoolExecutor, *asked: RemoteJudge) -> Scorer:
    return build_scorer(
        NO_SCENARIOS, matcher, packaged_reader(), threads, disclosure=FULL_DISCLOSURE, guests=ExtraJudges(asked=asked)
    )


async def rewards(scorer: Scorer, rubric: dict[str, Any]) -> dict[str, Scored | Unscored]:
    lent = scorer.lend(rubric_of_data(rubric))
    names = lent.collection, lent.card.slug
    requests = [
        ScoreRequest(*names, scorer.read(*names, [Message(**each) for each in talk], "assistant"), lent=lent)
        for talk in LOGS.values()
    ]
    return dict(zip(LOGS, await scorer.score(requests), strict=True))


def assert_in_order(found: dict[str, Scored | Unscored], distinct: int) -> None:
    values = {name: each.reward for name, each in found.items() if isinstance(each, Scored)}
    assert set(values) == set(LOGS)
    ordered = [values[name] for name in ORDER]
    assert ordered == sorted(ordered, reverse=True)
    assert len(set(ordered)) >= distinct
    assert all(values[name] <= values["fair"] and values[name] < values["good"] for name in EMPTY)


async def test_rules_and_the_local_model_alone(matcher: Matcher, threads: ThreadPoolExecutor) -> None:
    assert_in_order(await rewards(scorer_of(matcher, threads), RUBRIC), 4)


async def test_a_decision_model(matcher: Matcher, threads: ThreadPoolExecutor) -> None:
    judge = DecisionJudge(MemoryDecider(decides), 0.5, packaged_reader())
    assert_in_order(await rewards(scorer_of(matcher, threads, judge), JUDGED), 3)


async def test_a_language_model(matcher: Matcher, threads: ThreadPoolExecutor) -> None:
    judge = LlmJudge(AskedModel(answers), VerdictCache(), reader=packaged_reader())
    assert_in_order(await rewards(scorer_of(matcher, threads, judge), JUDGED), 3)


async def test_a_judge_of_whole_conversations_is_a_part_of_the_reward(
    matcher: Matcher, threads: ThreadPoolExecutor
) -> None:
    class Length:
        name, version, reads_record = "reward_model", "rm_000000000000", False

        def estimate(self, cases: Sequence[Case]) -> list[Estimate]:
            return [Estimate(min(1.0, sum(len(t.agent) for t in case.transcript.turns) / 1000)) for case in cases]

    scorer = build_scorer(
        NO_SCENARIOS,
        matcher,
        packaged_reader(),
        threads,
        disclosure=FULL_DISCLOSURE,
        guests=ExtraJudges(reward_model=Length),
    )
    parts = [{"judge": "rubric", "weight": 3}, {"judge": "reward_model"}]
    found = await rewards(scorer, {**RUBRIC, "reward": {"combine": "weighted_sum", "parts": parts}})
    assert_in_order(found, 4)
    excellent = found["excellent"]
    assert isinstance(excellent, Scored)
    assert set(excellent.parts) == {"rubric", "reward_model"}


async def test_without_a_model_judged_criteria_have_no_number(matcher: Matcher, threads: ThreadPoolExecutor) -> None:
    found = await rewards(scorer_of(matcher, threads), JUDGED)
    assert all(isinstance(each, Unscored) and "`gives_a_day`" in each.message for each in found.values())


async def test_a_model_that_fails_is_an_error(matcher: Matcher, threads: ThreadPoolExecutor) -> None:
    judge = LlmJudge(AskedModel(lambda *_: FailureKind.TIMEOUT), VerdictCache())
    found = await rewards(scorer_of(matcher, threads, judge), JUDGED)
    assert all(isinstance(each, Unscored) and isinstance(each.error, JudgeFailed) for each in found.values())


async def test_what_was_lent_is_gone_when_nobody_needs_it(matcher: Matcher, threads: ThreadPoolExecutor) -> None:
    scorer = scorer_of(matcher, threads)
    lent = scorer.lend(rubric_of_data(RUBRIC))
    names = lent.collection, lent.card.slug
    assert scorer.lend(rubric_of_data(RUBRIC)) is lent
    del lent
    await asyncio.sleep(0)
    with pytest.raises(NotFound, match="was not stored"):
        scorer.read(*names, [], "assistant")
