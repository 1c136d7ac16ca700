"""The adapters of OpenAI's decisions and of chat servers: what is sent, and what is believed of the answer."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from openai.types import Decision

from reward_server.decisions.chat import ChatDecisions
from reward_server.decisions.model import DecisionModel
from reward_server.decisions.openai import OpenAIDecisions
from reward_server.decisions.questions import (
    AnswerProbabilities,
    ChoiceQuestion,
    DecisionProvider,
    LevelQuestion,
    Typed,
    Undecided,
    YesNoQuestion,
)
from reward_server.llm.base import FailureKind, LlmFailed
from reward_server.llm.caller import CallLimits
from tests.decisions.servers import Served, chat_answer

K = FailureKind
STATE = {"first": "a", "agent_turn": "When did it crack?"}
ASKED: dict[str, Typed] = {
    "asks": YesNoQuestion("Does it ask?", "it does"),
    "about": ChoiceQuestion("About what?", (("noise", "the crack"), ("none", None))),
    "care": LevelQuestion("How caring?", ("cold", "warm")),
}
ANSWERS: list[dict[str, Any]] = [
    {"type": "predicate", "name": "asks", "probability": 0.9},
    {
        "type": "choice",
        "name": "about",
        "choice": "noise",
        "confidence": 0.8,
        "probabilities": [{"value": "noise", "probability": 0.8}, {"value": "none", "probability": 0.2}],
    },
    {
        "type": "score",
        "name": "care",
        "score": 0.75,
        "confidence": 0.5,
        "probabilities": [
            {"label": "0", "value": 0, "probability": 0.25},
            {"label": "1", "value": 1, "probability": 0.75},
        ],
    },
]
USAGE = {
    "input_tokens": 90,
    "input_tokens_details": {"cache_write_tokens": 0, "cached_tokens": 64},
    "output_tokens": 3,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 93,
}


def answered(*answers: dict[str, Any]) -> dict[str, Any]:
    return {"model": "gpt-6-luna", "answers": list(answers), "usage": USAGE}


Make = Callable[[str], DecisionProvider]


async def outcomes(make: Make, url: str, asked: dict[str, Typed]) -> dict[str, Any]:
    model = DecisionModel(make(url), CallLimits(retries=0, deadline_s=5))
    try:
        return await model.outcomes(STATE, asked, lab_id="acme")
    finally:
        await model.close()


def openai_at(url: str) -> DecisionProvider:
    return OpenAIDecisions("gpt-6-luna", "a-key", base_url=f"{url}/v1")


def chat_at(url: str) -> DecisionProvider:
    return ChatDecisions("m", "none", base_url=f"{url}/v1")


async def test_openai_is_asked_in_its_own_shape() -> None:
    Decision.model_validate(answered(*ANSWERS))  # what the SDK takes for an answer
    with Served(lambda _: answered(*ANSWERS)) as server:
        found = await outcomes(openai_at, server.url, ASKED)
    [body] = server.bodies
    assert server.paths == ["/v1/decisions"]
    assert (body["model"], body["input"]) == ("gpt-6-luna", '{"first":"a","agent_turn":"When did it crack?"}')
    assert [(each["name"], each["type"]) for each in body["questions"]] == [
        ("asks", "predicate"),
        ("about", "choice"),
        ("care", "score"),
    ]
    assert body["questions"][1]["choices"] == [{"value": "noise", "description": "the crack"}, {"value": "none"}]
    assert found["asks"].yes == pytest.approx(0.9)
    assert found["about"].best == "noise"
    assert found["care"].expectation == pytest.approx(0.75)


async def test_openai_answers_are_matched_by_name_and_a_refusal_is_one_questions_failure() -> None:
    refusal = {"type": "refusal", "name": "about"}
    with Served(lambda _: answered(ANSWERS[2], refusal, ANSWERS[0])) as server:
        found = await outcomes(openai_at, server.url, ASKED)
    assert found["about"] == Undecided(K.REFUSED)
    assert found["asks"].yes == pytest.approx(0.9)
    assert found["care"].expectation == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("answers", "kind"),
    [
        ([ANSWERS[0] | {"type": "score"}], K.WRONG_TYPE),
        ([ANSWERS[0] | {"probability": 1.7}], K.OUT_OF_RANGE),
        ([ANSWERS[0] | {"probability": math.nan}], K.NOT_FINITE),
        ([ANSWERS[0] | {"probability": None}], K.MALFORMED),
        ([ANSWERS[0], ANSWERS[0]], K.WRONG_IDS),
        ([ANSWERS[0] | {"name": None}], K.MISSING),
        ([], K.MISSING),
    ],
)
async def test_a_wrong_answer_of_openai_is_a_failure_of_its_kind(
    answers: list[dict[str, Any]], kind: FailureKind
) -> None:
    with Served(lambda _: answered(*answers)) as server:
        found = await outcomes(openai_at, server.url, {"asks": ASKED["asks"]})
    assert found == {"asks": Undecided(kind)}


def says(**probabilities: float) -> dict[str, float]:
    return {word: math.log(p) for word, p in probabilities.items()}


async def test_a_chat_answer_is_read_from_the_likelihoods_of_its_labels() -> None:
    def answer(body: dict[str, Any]) -> Any:
        asked = body["messages"][1]["content"]
        if "Does it ask?" in asked:
            return chat_answer(says(Yes=0.6, No=0.2) | {" yes": math.log(0.1), "Well": math.log(0.1)})
        return chat_answer(says(A=0.3, B=0.1) if "About what?" in asked else {"0": math.log(0.5), "1": math.log(0.5)})

    with Served(answer) as server:
        found = await outcomes(chat_at, server.url, ASKED)
    assert found["asks"].yes == pytest.approx(0.7 / 0.9)
    assert found["about"].probabilities == pytest.approx({"noise": 0.75, "none": 0.25})
    assert found["care"].expectation == pytest.approx(0.5)
    assert all(body["max_tokens"] == 1 and body["top_logprobs"] == 20 for body in server.bodies)
    assert server.bodies[0]["structured_outputs"] == {"choice": ["Yes", "No"]}


async def test_what_the_questions_of_a_state_share_stands_first() -> None:
    with Served(lambda _: chat_answer(says(Yes=0.9, A=0.05, **{"0": 0.05}))) as server:
        await outcomes(chat_at, server.url, ASKED)
    texts = ["\n".join(message["content"] for message in body["messages"]) for body in server.bodies]
    shared = next(n for n, each in enumerate(zip(*texts, strict=False)) if len(set(each)) > 1)
    assert '"agent_turn":"When did it crack?"' in texts[0][:shared]
    assert "Question: " in texts[0][:shared]


async def test_a_server_that_knows_no_constraint_is_asked_without() -> None:
    def answer(body: dict[str, Any]) -> Any:
        return 400 if "structured_outputs" in body else chat_answer(says(Yes=0.9))

    with Served(answer) as server:
        found = await outcomes(chat_at, server.url, {"asks": ASKED["asks"]})
    assert found["asks"].yes == 1.0
    assert len(server.bodies) == 2


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (chat_answer(says(Maybe=0.97, Yes=0.01)), K.UNKNOWN_LABEL),
        (chat_answer({"<think>": 0.0}), K.UNKNOWN_LABEL),
        (chat_answer(says(Yes=0.9), logprobs=None), K.NO_LOGPROBS),
        (chat_answer({}), K.NO_LOGPROBS),
        (chat_answer({"Yes": math.nan}), K.NOT_FINITE),
        (chat_answer(says(Yes=0.9), finish_reason="content_filter"), K.REFUSED),
        ({"choices": []}, K.EMPTY),
        ({"choices": "Yes"}, K.MALFORMED),
        (b"Yes", K.MALFORMED),
        ("cut", K.RESET),
        (500, K.OVERLOADED),
    ],
)
async def test_a_chat_answer_that_is_none_gives_no_number(answer: Any, kind: FailureKind) -> None:
    with Served(lambda _: answer) as server:
        found = await outcomes(chat_at, server.url, {"asks": ASKED["asks"]})
    assert found == {"asks": Undecided(kind)}


async def test_a_choice_of_more_options_than_log_probabilities_is_played_off() -> None:
    def answer(body: dict[str, Any]) -> Any:
        lines = body["messages"][1]["content"].splitlines()
        options = [line for line in lines if len(line) > 3 and line[1:3] == ": "]
        weights = {line[0]: 2.0 if line.endswith("o37") else 1.0 for line in options}
        total = sum(weights.values())
        return chat_answer({letter: math.log(weight / total) for letter, weight in weights.items()})

    many = ChoiceQuestion("Which?", tuple((f"o{number}", None) for number in range(50)))
    with Served(answer) as server:
        found = await outcomes(chat_at, server.url, {"which": many})
    assert len(server.bodies) == 4
    assert found["which"].probabilities["o37"] == pytest.approx(2 / 51)
    assert found["which"].probabilities["o1"] == pytest.approx(1 / 51)


@pytest.mark.parametrize("make", [openai_at, chat_at])
async def test_a_failure_has_neither_cause_nor_context(make: Make) -> None:
    provider = make("http://127.0.0.1:9")
    model = DecisionModel(provider, CallLimits(retries=0))
    with pytest.raises(LlmFailed) as caught:
        await model.decide(STATE, {"asks": ASKED["asks"]}, lab_id="acme")
    assert caught.value.kind is K.RESET
    assert caught.value.__cause__ is None
    await model.close()


def test_a_question_that_nobody_could_answer_is_refused_where_it_is_made() -> None:
    with pytest.raises(ValueError, match="between 2 and 255"):
        ChoiceQuestion("Which?", (("a", None), ("a", None)))
    with pytest.raises(ValueError, match="levels"):
        LevelQuestion("How?", ("one",))
    assert AnswerProbabilities({"true": 0.5, "false": 0.5}).best == "true"
