"""What an agent is told: tool calls in OpenAI's shape, each with an answer, and a system prompt in front."""

from __future__ import annotations

import json

from reward_server.agents.telling import TAKEN, system_prompt, told


def test_tool_calls_are_told_with_ids_and_answers() -> None:
    call = {"name": "order", "input": {"value": "now"}}
    messages = [
        {"role": "user", "content": "Hello."},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "user", "content": "Thanks."},
    ]
    shown = told("Be kind.", messages)
    assert [each["role"] for each in shown] == ["system", "user", "assistant", "tool", "user"]
    [made] = shown[2]["tool_calls"]
    assert json.loads(made["function"]["arguments"]) == {"value": "now"}
    assert shown[3] == {"role": "tool", "tool_call_id": made["id"], "content": TAKEN}


def test_an_empty_prompt_is_none_at_all() -> None:
    assert system_prompt("", None) == ""
    assert told("", [{"role": "user", "content": "Hello."}]) == [{"role": "user", "content": "Hello."}]
