"""Reading messages: merging, roles, tool calls."""

from __future__ import annotations

from typing import Any

import pytest

from reward_server.errors import InvalidRequest, NothingToScore
from reward_server.transcripts.transcript import ToolUse, Transcript, leaves, valid_tool_ids
from scenarios.schema import Tool
from tests.scoring.builders import GOOD, a_scenario, a_transcript, call, messages
from trainer_client.wire import Message, ToolCall


def read(*pairs: tuple[str, str], agent_role: Any = "assistant") -> Transcript:
    return Transcript.from_messages([Message(role=role, content=text) for role, text in pairs], agent_role)


def shape(transcript: Transcript) -> tuple[str | None, list[tuple[str, str | None]]]:
    return transcript.opening, [(turn.agent, turn.persona) for turn in transcript.turns]


def test_turns_are_agent_and_answer() -> None:
    found = read(("user", "hi"), ("assistant", "a"), ("user", "b"), ("assistant", "c"))
    assert shape(found) == ("hi", [("a", "b"), ("c", None)])


def test_an_agent_that_speaks_first_has_no_opening() -> None:
    assert shape(read(("assistant", "a"), ("user", "b"))) == (None, [("a", "b")])


def test_the_agent_may_have_the_other_role() -> None:
    found = read(("assistant", "hi"), ("user", "a"), ("assistant", "b"), agent_role="user")
    assert shape(found) == ("hi", [("a", "b")])


def test_consecutive_messages_of_one_party_are_one() -> None:
    found = read(
        ("user", "hi"), ("user", "there"), ("assistant", "a"), ("assistant", "b"), ("user", "c"), ("user", "d")
    )
    assert shape(found) == ("hi\nthere", [("a\nb", "c\nd")])


@pytest.mark.parametrize("role", ["system", "developer", "tool"])
def test_other_roles_are_ignored_wherever_they_stand(role: str) -> None:
    found = read((role, "x"), ("user", "hi"), ("assistant", "a"), (role, "y"), ("assistant", "b"), (role, "z"))
    assert shape(found) == ("hi", [("a\nb", None)])


def test_empty_messages_are_turns_too() -> None:
    found = read(("user", ""), ("assistant", ""), ("user", ""), ("assistant", "a"))
    assert shape(found) == ("", [("", ""), ("a", None)])


@pytest.mark.parametrize("pairs", [[], [("user", "hi")], [("system", "x")]])
def test_without_an_agent_message_there_is_nothing_to_score(pairs: list[tuple[str, str]]) -> None:
    with pytest.raises(NothingToScore):
        read(*pairs)


def test_without_an_agent_message_the_error_names_the_roles_and_what_to_set() -> None:
    with pytest.raises(NothingToScore) as caught:
        read(("system", "x"), ("user", "hi"), ("user", "there"))
    assert "the roles are system, user" in caught.value.message
    assert "set `agent_role` to `user`" in caught.value.message
    with pytest.raises(NothingToScore) as caught:
        read(("system", "x"))
    assert "set `agent_role`" not in caught.value.message


def test_an_unknown_role_is_refused_and_its_place_named() -> None:
    with pytest.raises(InvalidRequest) as caught:
        read(("user", "hi"), ("narrator", "once"))
    assert caught.value.errors[0].loc == ("messages", 1, "role")
    assert "narrator" not in caught.value.errors[0].msg


def uses(**given: Any) -> tuple[ToolUse, ...]:
    message = Message(role="assistant", content="", tool_calls=[ToolCall.model_validate(given)])
    return Transcript.from_messages([message], tools=a_scenario().card.tools).turns[0].uses


@pytest.mark.parametrize(
    ("given", "tool", "valid"),
    [
        (call("urgency", value="today"), "urgency", True),
        (call("Urgency", value="today"), "urgency", True),
        ({**call("urgency", value="today"), "type": "decision"}, "urgency", True),
        ({**call("urgency", value="today"), "type": "artifact"}, "urgency", False),
        (call("urgency", value="later"), "urgency", False),
        (call("urgency", value=["today"]), "urgency", False),
        (call("urgency", value="today", note="x"), "urgency", False),
        (call("urgency"), "urgency", False),
        (call("ticket", summary="drip"), "ticket", True),
        (call("ticket", summary=3), "ticket", False),
        (call("ticket"), "ticket", False),
        (call("unknown", value="today"), None, False),
    ],
)
def test_tool_calls_are_checked(given: dict[str, Any], tool: str | None, valid: bool) -> None:
    (use,) = uses(**given)
    assert (use.tool_id, use.valid) == (tool, valid)


def test_an_input_of_bottomless_depth_fits_no_tool_that_would_have_to_follow_it() -> None:
    schema = {"type": "object", "properties": {"next": {"$ref": "#"}}}
    chain = Tool(id="chain", type="artifact", name="Chain", mode="json_schema", json_schema=schema)
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"next": deep}
    assert valid_tool_ids([ToolCall.model_construct(name="chain", input={"next": {}})], [chain]) == ("chain",)
    assert valid_tool_ids([ToolCall.model_construct(name="chain", input=deep)], [chain]) == ()
    assert list(leaves({"a": deep, "b": [1, "x"]})) == [1, "x"]


def test_calls_of_merged_messages_stay_in_order() -> None:
    found = Transcript.from_messages(
        [
            Message(role="assistant", content="a", tool_calls=[ToolCall(name="urgency", input={"value": "today"})]),
            Message(role="assistant", content="b", tool_calls=[ToolCall(name="ticket", input={"summary": "x"})]),
        ],
        tools=a_scenario().card.tools,
    )
    assert found.turns[0].valid_tools == ("urgency", "ticket")


def test_equal_messages_give_equal_transcripts() -> None:
    assert a_transcript(*GOOD) == a_transcript(*GOOD)
    assert a_transcript(*GOOD) != a_transcript(*GOOD[:-1])


def test_what_was_said_stays_out_of_the_repr() -> None:
    assert "kitchen" not in repr(a_transcript(*GOOD)).lower()


def test_said_by_knows_the_opening_and_the_edges() -> None:
    found = Transcript.from_messages(messages("a", "b"))
    assert found.said_by("persona", 0) == "Hello, my roof is leaking."
    assert (found.said_by("agent", 1), found.said_by("persona", 1)) == ("a", "b")
    assert found.said_by("agent", 0) == found.said_by("agent", 2) == found.said_by("agent", -1) == ""
