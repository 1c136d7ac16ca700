"""Reward functions: what each measures, what it refuses, and that a failure is never a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.trainer_client.scripted_model import model
from trainer_client.rewards import (
    PRESETS,
    ChatJudge,
    CompositeReward,
    EngagementReward,
    FunctionReward,
    HelpfulnessReward,
    JudgeReward,
    KeywordReward,
    LengthReward,
    RewardContext,
    RewardError,
    RewardResult,
    ServerReward,
    SimilarityReward,
    TaskCompletionReward,
    as_reward,
    preset,
)


def talk(*lines: str) -> list[dict[str, Any]]:
    """A conversation that the user begins."""
    return [{"role": ("user", "assistant")[n % 2], "content": line} for n, line in enumerate(lines)]


SHORT = talk("My order is late.", "I am sorry. What is its number?", "It is 4711, and I ordered it three weeks ago.")


def test_length_is_the_share_of_the_range_that_is_missed() -> None:
    reward = LengthReward(at_least=4, at_most=8)
    assert reward(SHORT) == 1.0
    assert reward(talk("Hi.", "Yes yes.")) == 0.5
    assert reward(talk("Hi.", "word " * 16)) == 0.5
    assert reward.score(talk("Hi.")).reason == "the agent says nothing"


@pytest.mark.parametrize(("mode", "expected"), [("any", 1.0), ("all", 0.5), ("none", 0.0)])
def test_keywords_are_whole_words_of_the_agent(mode: Any, expected: float) -> None:
    assert KeywordReward(["number", "ordered"], mode)(SHORT) == expected
    assert KeywordReward(["numb"], "none")(SHORT) == 1.0


def test_a_keyword_may_have_to_occur_more_than_once() -> None:
    assert KeywordReward(["sorry"], at_least=2)(SHORT) == 0.0
    assert KeywordReward(["sorry"], at_least=2)(talk("Late.", "Sorry, so sorry.")) == 1.0


def test_similarity_is_the_best_cosine_of_any_turn() -> None:
    def embed(texts: Sequence[str]) -> list[list[float]]:
        return [[float("sorry" in text), float("number" in text)] for text in texts]

    assert SimilarityReward(["sorry, number"], embed)(SHORT) == pytest.approx(1.0)
    assert SimilarityReward(["sorry"], embed)(talk("Hi.", "A number.", "4711.", "I am sorry.")) == 1.0
    assert SimilarityReward(["sorry"], embed)(talk("Hi.", "Go away.")) == 0.0


def test_engagement_counts_replies_to_the_agent_alone() -> None:
    assert EngagementReward(full_words=10)(SHORT) == 1.0
    assert EngagementReward(full_words=20)(SHORT) == 0.5
    assert EngagementReward()(talk("A very long first message that no agent has influenced.")) == 0.0


def test_a_function_is_enough() -> None:
    reward = as_reward(lambda messages: len(messages) / 10)
    assert reward(SHORT) == 0.3
    assert as_reward(reward) is reward
    with pytest.raises(TypeError, match="function of messages"):
        as_reward(LengthReward)  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [float("nan"), 1.1, -0.1])
def test_a_reward_outside_of_its_range_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        FunctionReward(lambda _: number).score(SHORT)


@pytest.mark.parametrize(("combine", "expected"), [("weighted_sum", 0.85), ("min", 0.4), ("product", 0.4**0.25)])
def test_a_composite_shows_its_parts(combine: Any, expected: float) -> None:
    low = FunctionReward(lambda _: RewardResult(0.4, {"inner": 0.2}, "too few"))
    reward = CompositeReward({"low": (low, 1.0), "length": (LengthReward(), 3.0)}, combine)
    result = reward.score(SHORT)
    assert result.reward == pytest.approx(expected)
    assert result.components["low"] == 0.4
    assert result.components["low/inner"] == 0.2
    assert result.reason == "low: too few"
    assert [each.reward for each in reward.score_many([SHORT, SHORT])] == [result.reward] * 2


@pytest.mark.parametrize("weights", [(0.0, 0.0), (-1.0, 2.0), (float("inf"), 1.0)])
def test_weights_that_mean_nothing_are_refused(weights: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="weight"):
        CompositeReward({"a": (LengthReward(), weights[0]), "b": (LengthReward(), weights[1])})


def test_the_servers_reward_is_a_part_like_any_other() -> None:
    reward = CompositeReward({"server": ServerReward(), "length": LengthReward()})
    assert reward.score(SHORT, RewardContext(server_reward=0.5)).reward == 0.75
    with pytest.raises(RewardError, match="no server played"):
        reward.score(SHORT)


def test_a_goal_is_checked_by_code_or_by_a_judge_and_not_by_both() -> None:
    assert TaskCompletionReward("the number is known", check=lambda talk: "4711" in talk[-1]["content"])(SHORT) == 1.0
    with pytest.raises(ValueError, match="not both"):
        TaskCompletionReward("nothing")


def test_a_judge_is_asked_its_question_about_the_conversation() -> None:
    with model('{"reason": "It asks for the number.", "score": 7}') as (url, asked):
        judge = ChatJudge(url, "tiny")
        result = HelpfulnessReward(judge).score(SHORT)
        judge.close()
    assert (result.reward, result.reason) == (0.7, "It asks for the number.")
    assert "4711" in asked[0]["messages"][1]["content"]
    assert asked[0]["messages"][1]["content"].startswith("Question: Does the assistant give the user")


def test_an_answer_that_is_none_is_asked_for_once_more() -> None:
    with model(500, '{"reason": "Fine.", "score": 10}') as (url, asked):
        judge = ChatJudge(url, "tiny")
        assert JudgeReward("Is it fine?", judge)(SHORT) == 1.0
        judge.close()
    assert len(asked) == 2


@pytest.mark.parametrize(
    "answer", [500, "no JSON", '{"score": 11, "reason": ""}', '{"score": true, "reason": ""}', "[]"]
)
def test_a_judge_without_a_usable_answer_has_failed(answer: str | int) -> None:
    with model(answer) as (url, asked):
        judge = ChatJudge(url, "tiny")
        with pytest.raises(RewardError, match="no usable answer"):
            JudgeReward("Is it fine?", judge)(SHORT)
        judge.close()
    assert len(asked) == 2


@pytest.mark.parametrize("domain", PRESETS)
def test_a_preset_asks_a_judge(domain: str) -> None:
    class Half:
        version = "half"

        def ask(self, question: str, messages: object) -> tuple[float, str]:
            return 0.5, ""

    result = preset(domain, Half()).score(SHORT)
    assert result.components["task_completion"] == 0.5
    assert result.components["length"] == 1.0
    assert ("engagement" in result.components) == (domain == "intake")


def test_an_unknown_preset_is_named_with_those_that_exist() -> None:
    with pytest.raises(ValueError, match="use support, technical_help"):
        preset("cooking", None)  # type: ignore[arg-type]
