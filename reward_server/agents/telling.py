"""Tells agents the scenario's public card and tools, and the conversation in OpenAI's shape. Nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from scenarios.library import PublicScenario

TAKEN = "Received."
"""What the environment answers to a tool call that fits: models expect an answer to each."""


def system_prompt(given: str | None, scenario: PublicScenario | None) -> str:
    """The lab's own, else the scenario's name and description; empty where there is neither."""
    if given is not None:
        return given
    return "" if scenario is None else f"{scenario.card.name}. {scenario.card.description}"


def tools_of(scenario: PublicScenario | None) -> list[dict[str, Any]]:
    """The scenario's tools as OpenAI's functions."""
    if scenario is None:
        return []
    return [
        {
            "type": "function",
            "function": {
                "name": tool.id,
                "description": tool.description or tool.name,
                "parameters": tool.input_schema,
            },
        }
        for tool in scenario.card.tools
    ]


def told(system: str, messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The conversation as the agent gets it; `messages` have roles, texts and tool calls as episodes show them."""
    shown: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    for place, message in enumerate(messages):
        calls = message.get("tool_calls") or ()
        if not calls:
            shown.append({"role": message["role"], "content": message["content"]})
            continue
        ids = [f"call_{place}_{number}" for number in range(len(calls))]
        made = [_call(call_id, call) for call_id, call in zip(ids, calls, strict=True)]
        shown.append({"role": message["role"], "content": message["content"] or None, "tool_calls": made})
        shown += [{"role": "tool", "tool_call_id": call_id, "content": TAKEN} for call_id in ids]
    return shown


def _call(call_id: str, call: Mapping[str, Any]) -> dict[str, Any]:
    arguments = json.dumps(call["input"], ensure_ascii=False)
    return {"id": call_id, "type": "function", "function": {"name": call["name"], "arguments": arguments}}
