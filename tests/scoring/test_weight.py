"""How much there is to read in a request, and how much is too much."""

from __future__ import annotations

import pytest

from reward_server.errors import InvalidRequest, TooMuchText
from reward_server.scoring.weight import (
    MAX_REQUEST_CHARACTERS,
    MAX_TRANSCRIPT_CHARACTERS,
    MAX_TURN_CHARACTERS,
    MESSAGE,
    weight,
    weight_of,
    weight_of_all,
)
from trainer_client.wire import Message


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
