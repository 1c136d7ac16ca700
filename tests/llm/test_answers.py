"""Strict reading of answers: nothing is coerced, nothing is quoted."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from reward_server.llm.answers import parse_answer, strict_schema
from reward_server.llm.base import FailureKind, LlmFailed, TokenUsage
from tests.llm.asking import GOOD, PRIVATE, Verdicts

K = FailureKind


def failure(text: str, schema: type[BaseModel] = Verdicts) -> LlmFailed:
    with pytest.raises(LlmFailed) as caught:
        parse_answer(text, schema, TokenUsage(3, 4))
    return caught.value


def changed(**changes: Any) -> str:
    return json.dumps({**GOOD, "found": [{**GOOD["found"][0], **changes}]})


def test_a_good_answer_is_read() -> None:
    assert parse_answer(f"\n {json.dumps(GOOD)} ", Verdicts).model_dump() == GOOD


@pytest.mark.parametrize(
    "text",
    [
        "```json\n{}\n```",
        "Here is my verdict: {} and that is all",
        "<think>Is it {{met}}? Perhaps {{}}.</think>\n\n{}",
        "<think>A draft: {}</think>```{}```",
        'Of {{two}} kinds, {{"note": 1}}: {}',
    ],
)
def test_the_one_object_of_the_shape_is_the_answer_whatever_stands_around_it(text: str) -> None:
    whole = text.format(*[json.dumps(GOOD)] * 2)
    assert parse_answer(whole, Verdicts).model_dump() == GOOD


def test_a_limit_that_a_fenced_answer_breaks_is_named() -> None:
    assert failure('Well: {"found": [], "score": 1.01}').kind is K.OUT_OF_RANGE
    assert failure('Well: {"found": [], "score": NaN}').kind is K.NOT_FINITE


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_nothing_is_empty(text: str) -> None:
    assert failure(text).kind is K.EMPTY


@pytest.mark.parametrize(
    "text",
    [
        "I would say it is met.",
        "```json\n" + json.dumps(GOOD) + "\n```\nor\n```json\n" + json.dumps(GOOD) + "\n```",
        "The agent wrote " + json.dumps(GOOD) + ", so: " + json.dumps({**GOOD, "score": 0.1}),
        "<think>" + json.dumps(GOOD),
        "<think>" + json.dumps(GOOD) + "</think> It is met.",
        "[" + json.dumps(GOOD) + "]",
        "{" * 100_000,
        '{"a":' * 100_000,
        json.dumps(GOOD)[:-3],
        "null",
        "[]",
        "1",
        changed(met=1),
        changed(met="true"),
        changed(met=None),
        changed(turn="1"),
        changed(turn=1.5),
        changed(turn=True),
        changed(note="more than was asked for"),
        json.dumps({"found": GOOD["found"]}),
        json.dumps({"found": [{"id": "c1", "met": True}], "score": 0.5}),
        '{"found": [], "score": 0.1, "score": 0.9}',
        '{"found": [], "score": "NaN"}',
        "[" * 100_000,
        '{"found": [], "score": ' + "9" * 5000 + "}",
    ],
)
def test_another_shape_is_malformed(text: str) -> None:
    assert failure(text).kind is K.MALFORMED


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_what_is_no_number_is_not_finite(number: str) -> None:
    assert failure(f'{{"found": [], "score": {number}}}').kind is K.NOT_FINITE
    assert failure(f'{{"found": [], "score": 0.5, "more": [{number}]}}').kind is K.NOT_FINITE


@pytest.mark.parametrize("text", [changed(turn=51), changed(turn=-1), '{"found": [], "score": 1.01}'])
def test_a_broken_limit_is_out_of_range(text: str) -> None:
    assert failure(text).kind is K.OUT_OF_RANGE


def test_a_broken_limit_does_not_hide_a_wrong_shape() -> None:
    assert failure(changed(turn=51, met="yes")).kind is K.MALFORMED


def test_a_failure_costs_what_was_used_and_quotes_nothing() -> None:
    failed = failure(json.dumps({**GOOD, "leak": PRIVATE}))
    assert failed.usage == TokenUsage(3, 4)
    assert failed.__cause__ is None
    assert failed.__context__ is None
    assert PRIVATE not in f"{failed!r} {failed} {failed.args}"


class Inner(BaseModel):
    level: int = Field(3, ge=1, le=5)


class Outer(BaseModel):
    inner: Inner
    many: tuple[Inner, ...] = ()


@pytest.mark.parametrize(
    "text", ['{"inner": {"level": 1}}', '{"inner": {}, "many": []}', '{"inner": {"level": 1}, "many": [{}]}']
)
def test_a_default_of_ours_answers_for_nobody(text: str) -> None:
    assert failure(text, Outer).kind is K.MALFORMED
    assert parse_answer('{"inner": {"level": 1}, "many": [{"level": 2}]}', Outer).many[0].level == 2


class Mood(StrEnum):
    CALM = "calm"
    CROSS = "cross"


class Rich(BaseModel):
    """Everything a schema may have."""

    mood: Mood
    kind: Literal["a", "b"]
    maybe: int | None
    names: list[str] = Field(min_length=1, max_length=3, description="Who.")
    title: str = Field(max_length=10)
    score: float = Field(gt=0.0, lt=1.0)


def test_the_schema_is_strict_and_says_limits_in_words() -> None:
    schema = strict_schema(Rich)
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["mood", "kind", "maybe", "names", "title", "score"]
    assert schema["properties"]["names"] == {
        "type": "array",
        "items": {"type": "string"},
        "description": "Who. (at least 1 items, at most 3 items)",
    }
    assert schema["properties"]["score"] == {"type": "number", "description": "(more than 0.0, less than 1.0)"}
    assert schema["properties"]["maybe"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert schema["properties"]["title"]["type"] == "string"
    assert schema["$defs"]["Mood"]["enum"] == ["calm", "cross"]
    assert strict_schema(Outer)["$defs"]["Inner"]["required"] == ["level"]


class Free(BaseModel):
    scores: dict[str, float]


class Pair(BaseModel):
    pair: tuple[int, str]


@pytest.mark.parametrize("schema", [Free, Pair])
def test_what_no_strict_schema_can_say_is_refused(schema: type[BaseModel]) -> None:
    with pytest.raises(TypeError, match="strict schema"):
        strict_schema(schema)
