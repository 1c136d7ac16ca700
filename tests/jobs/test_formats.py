"""Each format becomes conversations of an agent and a persona; what is no conversation is refused with a reason."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reward_server.offline.formats import ANYONE, FORMATS, BadRow, Speakers, convert, detect
from reward_server.transcripts.transcript import Transcript
from trainer_client import wire

BROKEN_CALL = {"function": {"name": "x", "arguments": "{"}}
HELLO = [("user", "Hello."), ("assistant", "Hi, what is wrong?"), ("user", "A noise.")]

ROWS: dict[str, Any] = {
    "openai": {"messages": [{"role": "system", "content": "Be kind."}, *({"role": r, "content": c} for r, c in HELLO)]},
    "sharegpt": {
        "conversations": [{"from": {"user": "human", "assistant": "gpt"}[role], "value": text} for role, text in HELLO]
    },
    "tau_bench": {
        "traj": [
            {"role": "system", "content": "Policy"},
            *({"role": r, "content": c} for r, c in HELLO[:1]),
            {"role": "assistant", "content": None, "tool_calls": [{"id": "x"}]},
            {"role": "tool", "content": "{}"},
            *({"role": r, "content": c} for r, c in HELLO[1:]),
        ]
    },
    "casino": {
        "chat_logs": [
            {"id": "mturk_agent_2", "text": "Hello."},
            {"id": "mturk_agent_1", "text": "Hi, what is wrong?"},
            {"id": "mturk_agent_2", "text": "A noise."},
            {"id": "mturk_agent_1", "text": "Submit-Deal", "task_data": {}},
        ]
    },
    "abcd": {
        "original": [["customer", "Hello."], ["agent", "Hi, what is wrong?"], ["action", "x"], ["customer", "A noise."]]
    },
    "mathdial": {"conversation": "Student: Hello.|EOM|Teacher: (probing)Hi, what is wrong?|EOM|Student: A noise."},
    "mts_dialog": {"dialogue": "Patient: Hello.\nDoctor: Hi, what is wrong?\nPatient: A noise."},
    "transcript": {"transcript": "Customer: Hello.\nAgent: Hi, what is wrong?\nCustomer: A noise."},
}

CUSTOMER_AND_AGENT = [{"role": "customer", "content": "Hello."}, {"role": "agent", "content": "Hello."}]


def conversations(row: Any, name: str = "auto", speakers: Speakers = ANYONE) -> list[list[tuple[str, str]]]:
    return [[(m["role"], m["content"]) for m in talk.messages] for talk in convert(row, name, speakers)]


@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_detected_and_read(name: str) -> None:
    assert detect(ROWS[name]) == name
    (found,) = conversations(ROWS[name])
    assert [line for line in found if line != ("system", "Be kind.")] == HELLO


def test_hh_rows_hold_two_conversations() -> None:
    row = {"chosen": "\n\nHuman: Hello.\n\nAssistant: Good.", "rejected": "\n\nHuman: Hello.\n\nAssistant: Bad."}
    chosen, rejected = convert(row, "auto")
    assert (chosen.part, rejected.part) == ("chosen", "rejected")
    assert chosen.messages[-1] == {"role": "assistant", "content": "Good."}


def test_mrbench_rows_hold_a_conversation_per_answer() -> None:
    row = {
        "conversation_history": "Tutor: Hi.\xa0Student: 4+5=8\xa0",
        "anno_llm_responses": {"Novice": {"response": "No."}, "Expert": {"response": "Look again."}},
    }
    found = list(convert(row, "auto"))
    assert [talk.part for talk in found] == ["Expert", "Novice"]
    assert found[0].messages[-1] == {"role": "assistant", "content": "Look again."}
    assert found[0].messages[1] == {"role": "user", "content": "4+5=8"}


def test_two_answers_to_one_prompt_are_two_conversations() -> None:
    found = conversations({"input": "Why?", "output_1": "Because.", "output_2": "No idea."})
    assert found == [[("user", "Why?"), ("assistant", "Because.")], [("user", "Why?"), ("assistant", "No idea.")]]


def test_tool_calls_of_both_shapes_are_kept() -> None:
    ours = {"name": "ticket", "type": "artifact", "input": {"part": "pads"}}
    theirs = {"id": "1", "type": "function", "function": {"name": "ticket", "arguments": '{"part": "pads"}'}}
    row = {"messages": [{"role": "assistant", "content": None, "tool_calls": [ours, theirs]}]}
    (talk,) = convert(row, "openai")
    assert talk.messages[0]["tool_calls"] == [ours, {"name": "ticket", "input": {"part": "pads"}}]


def test_content_in_parts_is_joined() -> None:
    parts = [{"type": "text", "text": "One."}, {"type": "image_url"}, {"type": "text", "text": "Two."}]
    assert conversations({"messages": [{"role": "assistant", "content": parts}]}) == [[("assistant", "One.\nTwo.")]]


def test_an_empty_agent_turn_is_kept_because_silence_counts() -> None:
    row = {"messages": [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": ""}]}
    assert conversations(row)[0][-1] == ("assistant", "")


def test_the_agent_can_be_the_user() -> None:
    (found,) = conversations(ROWS["openai"], speakers=Speakers(("user",)))
    assert [role for role, _ in found] == ["assistant", "user", "assistant"]


def test_a_row_says_itself_who_the_agent_is() -> None:
    (found,) = conversations(ROWS["openai"] | {"agent_role": "user"})
    assert [role for role, _ in found] == ["assistant", "user", "assistant"]
    (found,) = conversations(ROWS["openai"] | {"agent_role": "assistant"}, speakers=Speakers(("user",)))
    assert [role for role, _ in found] == ["user", "assistant", "user"]


def test_the_agents_role_may_be_any_that_the_caller_names() -> None:
    (found,) = conversations({"messages": CUSTOMER_AND_AGENT}, speakers=Speakers(("agent",)))
    assert [role for role, _ in found] == ["user", "assistant"]


def test_messages_of_neither_party_are_left_out() -> None:
    silent = [{"role": role, "content": "x"} for role in ("system", "developer", "tool", "function")]
    (found,) = conversations({"messages": [*silent, *ROWS["openai"]["messages"]]})
    assert found == conversations(ROWS["openai"])[0]


def test_the_agents_name_can_be_given() -> None:
    (found,) = conversations(ROWS["casino"], speakers=Speakers(("mturk_agent_2",)))
    assert [role for role, _ in found] == ["assistant", "user", "assistant"]
    (found,) = conversations(ROWS["mts_dialog"], speakers=Speakers(("Patient",)))
    assert [role for role, _ in found] == ["assistant", "user", "assistant"]


def test_a_second_doctor_is_the_agent_too() -> None:
    (found,) = conversations({"dialogue": "Doctor: Hi.\nPatient: Hello.\nDoctor_2: Any pain?"})
    assert [role for role, _ in found] == ["assistant", "user", "assistant"]


def test_a_line_without_a_speaker_goes_on_with_the_one_before() -> None:
    (found,) = conversations({"dialogue": "Doctor: Hi.\nHow are you?\nPatient: Well."})
    assert found[0] == ("assistant", "Hi.\nHow are you?")


@pytest.mark.parametrize(
    ("row", "name", "reason"),
    [
        ([1, 2], "auto", "must be an object"),
        ({"x": 1}, "auto", "no known format"),
        ({"messages": "Hello."}, "auto", "must be a list"),
        ({"messages": [{"content": "Hello."}]}, "auto", "needs a role"),
        ({"messages": [{"role": "assistant", "content": 7}]}, "auto", "must be text"),
        ({"messages": [{"role": "user", "content": "Hello."}]}, "auto", "no message by the agent, only by `user`"),
        ({"messages": [{"role": "system", "content": "Hello."}]}, "auto", "no message by the agent, only by nobody"),
        ({"messages": CUSTOMER_AND_AGENT}, "auto", "neither assistant nor user: role `customer`, `agent`"),
        ({"agent_role": "agent", "messages": CUSTOMER_AND_AGENT}, "auto", "`agent_role` must be assistant or user"),
        ({"conversations": [{"from": "human", "value": "Hello."}]}, "auto", "only by `human`"),
        ({"messages": [{"role": "assistant", "content": "", "tool_calls": ["x"]}]}, "auto", "must be an object"),
        ({"conversation": 3}, "auto", "`conversation` holds no conversation of a known form"),
        ({"conversations": [{"speaker": "x"}]}, "auto", "`conversations` holds no conversation of a known form"),
        ({"dialogue": "nothing here"}, "auto", "no `Speaker: text` lines"),
        ({"dialogue": None}, "auto", "not a row of format mts_dialog"),
        ({"chosen": "x", "rejected": "y"}, "auto", "no Human:/Assistant: turns"),
        ({"chat_logs": [{"text": "x"}]}, "auto", "no `id`"),
        ({"original": [["agent"]]}, "auto", "not a row"),
        ({"messages": []}, "tau_bench", "no `traj`"),
    ],
)  # fmt: skip
def test_what_is_no_conversation_is_refused_with_a_reason(row: Any, name: str, reason: str) -> None:
    with pytest.raises(BadRow, match=reason):
        list(convert(row, name))


@pytest.mark.parametrize("name", sorted(set(FORMATS) - {"answers"}))
def test_a_refusal_does_not_quote_the_row(name: str) -> None:
    row = dict.fromkeys(FORMATS[name].fields, "CANARY")
    with pytest.raises(BadRow) as caught:
        list(convert(row, name))
    assert "CANARY" not in str(caught.value)


SAID = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hi, what is wrong?"}]
DONE = {"name": "repair", "arguments": {"value": "new_tube"}}


@pytest.mark.parametrize(
    "row",
    [
        {"messages": SAID},
        {"conversation": [{**each, "language": "English"} for each in SAID]},
        {"conversations": SAID},
        {"prompt": SAID[:1], "chosen": SAID[1:], "rejected": SAID[1:]},
        {"prompt": "Hello.", "chosen": SAID[1:], "rejected": SAID[1:]},
        {"prompt": SAID[:1], "chosen": SAID, "rejected": SAID},
    ],
)
def test_chat_messages_are_read_wherever_they_are_kept(row: Any) -> None:
    for found in conversations(row):
        assert found == HELLO[:2]


@pytest.mark.parametrize(
    "row",
    [
        {"messages": [*SAID, {"role": "assistant", "content": "", "function_call": {**DONE, "arguments": "{"}}]},
        {"messages": [*SAID, {"role": "assistant", "content": "", "tool_calls": [BROKEN_CALL]}]},
    ],
)
def test_arguments_that_are_no_json_are_the_agents_mistake(row: Any) -> None:
    (talk,) = convert(row, "auto")
    assert talk.messages[-1]["tool_calls"][0]["input"] == {"arguments": "{"}


def test_tool_calls_of_every_form_are_the_same_call() -> None:
    pairs = [("human", "Hello."), ("gpt", "Hi, what is wrong?")]
    pairs += [("function_call", json.dumps(DONE)), ("observation", "{}")]
    rows = (
        {"messages": [*SAID, {"role": "assistant", "content": None, "function_call": DONE}]},
        {"messages": [*SAID, {"role": "assistant", "content": None, "tool_calls": [{"id": "1", **DONE}]}]},
        {"conversations": [{"from": who, "value": text} for who, text in pairs]},
    )
    for row in rows:
        (talk,) = convert(row, "auto")
        wired = [wire.Message.model_validate(message) for message in talk.messages]
        (turn,) = Transcript.from_messages(wired).turns
        assert [dict(use.input) for use in turn.uses] == [DONE["arguments"]]
