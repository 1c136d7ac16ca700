"""Problems of a request are told in words of this API, with nothing in them of what was sent."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Discriminator, ValidationError

from reward_server.api.body import parse
from reward_server.api.errors import problems_of
from reward_server.api.problems import _SIZES, _TEXTS, in_words
from reward_server.api.routes.episodes import EpisodeQuery
from reward_server.errors import InvalidRequest
from trainer_client.wire import CompareRequest, CreateEpisodeRequest, EvaluateRequest, RankRequest, TurnRequest

WHERE = {"collection_slug": "c", "scenario_slug": "s"}
SAID = [{"role": "user", "content": "quokka"}]
EVALUATE = {**WHERE, "messages": SAID}


def part(**fields: Any) -> dict[str, Any]:
    return {**EVALUATE, "reward_config": {"composite": fields}}


def config(**fields: Any) -> dict[str, Any]:
    return {**EVALUATE, "reward_config": fields}


TWICE = [{"id": "quokka", "messages": SAID}] * 2
PARTS = "Must be text, or a list of text parts and nothing else."
NO_CONTENT = "Is required: text of at most 10,000 characters; only a message with `tool_calls` may leave it out."
RUBRIC = [{"judge": "rubric"}]


@pytest.mark.parametrize(
    ("model", "sent", "told"),
    [
        (RankRequest, {**WHERE, "responses": TWICE}, "Ids must differ."),
        (RankRequest, {**WHERE, "responses": TWICE[:1]}, "Must have at least 2 entries, this has 1."),
        (EvaluateRequest, {**WHERE, "messages": []}, "Must have at least 1 entry."),
        (EvaluateRequest, WHERE, "Is required."),
        (EvaluateRequest, {**EVALUATE, "quokka": 1}, "Is not a known field."),
        (EvaluateRequest, {**EVALUATE, "mesages": SAID}, "Is not a known field: did you mean `messages`?"),
        (CreateEpisodeRequest, {**WHERE, "seed": 1}, "Is not a known field: did you mean `config.seed`?"),
        (
            CreateEpisodeRequest,
            {**WHERE, "config": {"max_turn": 3}},
            "Is not a known field: did you mean `max_turns`?",
        ),
        (EvaluateRequest, {**EVALUATE, "messages": "quokka"}, "Must be a list, not text."),
        (EvaluateRequest, {**WHERE, "messages": [{"role": "user", "content": 3}]}, "Must be text, not a number."),
        (EvaluateRequest, {**WHERE, "messages": [{"role": "user", "content": {}}]}, "Must be text, not an object."),
        (EvaluateRequest, {**WHERE, "messages": [{"role": "user", "content": [{}]}]}, PARTS),
        (EvaluateRequest, {**WHERE, "messages": [{"role": "user", "content": None}]}, NO_CONTENT),
        (EvaluateRequest, {**WHERE, "messages": [{"role": "user"}]}, NO_CONTENT),
        (
            EvaluateRequest,
            {**WHERE, "messages": [{"role": "user", "content": "q" * 12_345}]},
            "Must have at most 10,000 characters, this has 12,345.",
        ),
        (EvaluateRequest, {**WHERE, "messages": SAID * 600}, "Must have at most 512 entries, this has 600."),
        (TurnRequest, {"messages": SAID * 133}, "Must have at most 132 entries, this has 133."),
        (EvaluateRequest, {**EVALUATE, "normalization_key": ""}, "Must have at least 1 character."),
        (EvaluateRequest, {**EVALUATE, "agent_role": "quokka"}, "Must be 'assistant' or 'user'."),
        (EvaluateRequest, {**EVALUATE, "normalization_windows": ["quokka"]}, r"Must match ^\d+[dwmn]$."),
        (EvaluateRequest, [], "Must be an object."),
        (EvaluateRequest, config(risk_aversion=-1), "Must be at least 0."),
        (EvaluateRequest, config(risk_aversion=1000), "Must be at most 100."),
        (EvaluateRequest, config(risk_aversion="quokka"), "Must be a number."),
        (EvaluateRequest, config(skip_safety_gate="quokka"), "Must be true or false."),
        (EvaluateRequest, part(combine="gated", parts=RUBRIC), "`gated` needs a gate and at least one further part."),
        (EvaluateRequest, part(combine="min", parts=RUBRIC * 2), "Each judge may be named once."),
        (CompareRequest, {**WHERE, "response_a": {"messages": SAID}, "response_b": 7}, "Must be an object."),
        (CreateEpisodeRequest, {**WHERE, "config": {"seed": 1.5}}, "Must be a whole number."),
        (CreateEpisodeRequest, {**WHERE, "config": {"max_turns": 1000}}, "Must be at most 50."),
    ],
)
def test_a_problem_in_words(model: type[BaseModel], sent: Any, told: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse(model, json.dumps(sent).encode())
    assert [problem.msg for problem in refused.value.errors] == [told]


@pytest.mark.parametrize("message", [{"role": "user"}, {"role": "user", "content": "q" * 10_001}])
def test_a_problem_of_a_message_names_the_field(message: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse(EvaluateRequest, json.dumps({**WHERE, "messages": [*SAID, message]}).encode())
    assert [problem.loc for problem in refused.value.errors] == [("messages", 1, "content")]


def test_a_body_that_is_no_json_says_where() -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse(EvaluateRequest, b'{"messages": quokka')
    [problem] = refused.value.errors
    assert problem.msg == "Is not valid JSON: expected value at line 1 column 14."


class Tagged(BaseModel):
    """Something the API has none of: the library's words for a wrong tag repeat it."""

    of: Annotated[Kept | Thrown, Discriminator("kind")]


class Kept(BaseModel):
    kind: Literal["kept"]


class Thrown(BaseModel):
    kind: Literal["thrown"]


def test_a_problem_that_nobody_foresaw_repeats_nothing_of_what_was_sent() -> None:
    with pytest.raises(ValidationError) as refused:
        Tagged.model_validate({"of": {"kind": "quokka"}})
    assert "quokka" in str(refused.value)
    assert [problem.msg for problem in problems_of(refused.value)] == ["Is not valid."]


@pytest.mark.parametrize("kind", [*_TEXTS, *_SIZES, "value_error", "assertion_error", "of_a_later_version"])
def test_whatever_an_entry_lacks_there_is_a_sentence_for_it(kind: str) -> None:
    said = in_words({"type": kind, "loc": ("quokka",)})
    assert said.endswith(".")
    assert "quokka" not in said


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ({"status": "quokka"}, "Must be 'active', 'complete' or 'expired'."),
        ({"limit": "quokka"}, "Must be a whole number."),
        ({"limit": "9" * 5000}, "Must be a smaller whole number."),
        ({"collection_slug": "quokka\0"}, "Text must not contain NUL characters."),
    ],
)
def test_a_problem_of_the_query_in_words(sent: dict[str, str], told: str) -> None:
    with pytest.raises(ValidationError) as refused:
        EpisodeQuery.model_validate(sent)
    assert [problem.msg for problem in problems_of(refused.value)] == [told]
