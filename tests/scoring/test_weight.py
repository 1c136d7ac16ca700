"""How much there is to read in a request, and how much is too much."""

from __future__ import annotations

from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from personas.text.plain import plain
from reward_server.errors import InvalidRequest, TooMuchText
from reward_server.transcripts.weight import (
    MAX_REQUEST_CHARACTERS,
    MAX_TRANSCRIPT_CHARACTERS,
    MAX_TURN_CHARACTERS,
    MESSAGE,
    weight,
    weight_of,
    weight_of_all,
)
from trainer_client.wire import Message, normalised_length


def talk(turns: int, characters: int) -> list[Message]:
    said = [Message(role="assistant", content="x" * characters), Message(role="user", content="y")]
    return said * turns


def test_characters_and_tool_inputs_count() -> None:
    assert weight(Message(role="assistant", content="four")) == 4 + MESSAGE
    called = Message.model_validate(
        {"role": "assistant", "content": "", "tool_calls": [{"name": "n", "input": {"a": "b"}}]}
    )
    assert weight(called) == len('[{"a":"b"}]') + MESSAGE


def test_a_conversation_may_be_so_long_and_no_longer() -> None:
    turns = MAX_TRANSCRIPT_CHARACTERS // 10_100
    assert weight_of(talk(turns, 10_000)) <= MAX_TRANSCRIPT_CHARACTERS
    with pytest.raises(TooMuchText):
        weight_of(talk(turns + 1, 10_000))


def test_messages_in_a_row_are_one_text_also_around_others() -> None:
    one, aside = Message(role="assistant", content="x" * 10_000), Message(role="tool", content="result")
    assert weight_of([one, aside] * (MAX_TURN_CHARACTERS // 10_000))
    with pytest.raises(TooMuchText):
        weight_of([one, aside] * (MAX_TURN_CHARACTERS // 10_000 + 1))


def test_a_request_holds_so_many_characters_of_conversations() -> None:
    one = talk(20, 9_000)
    few = MAX_REQUEST_CHARACTERS // weight_of(one)
    assert weight_of_all([one] * few) <= MAX_REQUEST_CHARACTERS
    with pytest.raises(TooMuchText):
        weight_of_all([one] * (few + 1))


def test_the_inputs_of_a_message_are_bounded() -> None:
    calls = [{"name": "n", "input": {"a": "b" * 15_000}}] * 3
    with pytest.raises(InvalidRequest):
        weight_of([Message.model_validate({"role": "assistant", "content": "", "tool_calls": calls})])


LIGATURE = "\ufdfa"
"""18 characters in NFKC."""
GROWING = [each for each in map(chr, range(0x80, 0xD800)) if len(normalize("NFKC", each)) > 1]


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "caf\u00e9",
        "\u4f60\u597d\uff0c\u4e16\u754c",
        "\ud55c\uad6d\uc5b4",
        "\u201cquoted\u201d",
        "e\u0301",
        "\U0001f600",
    ],
)
def test_ordinary_text_has_its_own_length(text: str) -> None:
    assert normalised_length(text) == len(text)


@given(st.text(st.sampled_from("ab \n\u0301\u0323\u4f60") | st.sampled_from(GROWING)))
def test_what_grows_counts_as_it_is_read(text: str) -> None:
    assert normalised_length(text) == sum(len(normalize("NFKC", each)) for each in text)
    assert len(plain(text)) <= normalised_length(text)


def test_what_grows_is_charged_and_limited_as_it_is_read() -> None:
    said = Message(role="assistant", content=LIGATURE * 1_000)
    assert weight(said) == 18_000 + MESSAGE
    assert weight_of([said, Message(role="user", content="y")] * 13)
    with pytest.raises(TooMuchText):
        weight_of([said, Message(role="user", content="y")] * 14)
    with pytest.raises(TooMuchText):
        weight_of([said] * 3)


def test_what_grows_in_the_input_of_a_tool_counts_as_it_is_read() -> None:
    called = {"role": "assistant", "content": "", "tool_calls": [{"name": "n", "input": {"a": LIGATURE * 1_000}}]}
    assert weight(Message.model_validate(called)) == len('[{"a":""}]') + 18_000 + MESSAGE
    called["tool_calls"][0]["input"] = {"a": LIGATURE * 2_000}
    with pytest.raises(ValidationError):
        Message.model_validate(called)
