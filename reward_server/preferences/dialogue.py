"""Two conversations of one scenario as training data: what both were asked, and how each goes on.

The agent is `assistant`, the persona `user`, whatever they were called when they were stored. What both begin with
alike is the prompt. What the persona says after the last agent turn is nobody's to learn, so it is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Message = dict[str, Any]
AGENT, PERSONA, SYSTEM, TOOL = "assistant", "user", "system", "tool"
_SYSTEM_ROLES = frozenset({SYSTEM, "developer"})


class NotAPair(ValueError):  # noqa: N818 (it is an outcome, no accident)
    """Two conversations that say nothing to a learner; the text is a stable word for why."""


@dataclass(frozen=True)
class PromptSplit:
    """A prompt, which ends before an agent turn, and two ways to go on."""

    prompt: list[Message]
    a: list[Message]
    b: list[Message]


def split(
    messages_a: Sequence[Mapping[str, Any]], messages_b: Sequence[Mapping[str, Any]], agent_role: str
) -> PromptSplit:
    """The two as a prompt and its continuations.

    Raises:
        NotAPair: `same`; `no_prompt`, if nobody speaks before the agent; `prompts_differ`, if they part at something
            that the agent did not say; `one_goes_on`, if one is the beginning of the other.
    """
    a, b = (_ended_by_agent(_normalised(each, agent_role)) for each in (messages_a, messages_b))
    if a == b:
        raise NotAPair("same")
    shared = next((n for n, (one, other) in enumerate(zip(a, b, strict=False)) if one != other), min(len(a), len(b)))
    prompt, rest_a, rest_b = a[:shared], a[shared:], b[shared:]
    if not rest_a or not rest_b:
        raise NotAPair("one_goes_on")
    if (rest_a[0]["role"], rest_b[0]["role"]) != (AGENT, AGENT):
        raise NotAPair("prompts_differ")
    spoken = [message for message in prompt if message["role"] != SYSTEM]
    if not spoken or spoken[0]["role"] != PERSONA:
        raise NotAPair("no_prompt")
    return PromptSplit(prompt, rest_a, rest_b)


def _normalised(messages: Sequence[Mapping[str, Any]], agent_role: str) -> list[Message]:
    """With roles as chat templates know them; consecutive messages of a party are one, as they are to the judges."""
    found: list[Message] = []
    for message in messages:
        role = _role(message["role"], agent_role)
        if role == SYSTEM and any(each["role"] != SYSTEM for each in found):
            continue  # templates take a system message at the beginning alone
        calls = [_call(call) for call in message.get("tool_calls") or ()]
        if found and found[-1]["role"] == role != TOOL:
            found[-1]["content"] += "\n" + message["content"]
        else:
            found.append({"role": role, "content": message["content"]})
        if calls:
            found[-1]["tool_calls"] = [*found[-1].get("tool_calls", ()), *calls]
    return found


def _role(role: str, agent_role: str) -> str:
    if role in _SYSTEM_ROLES:
        return SYSTEM
    if role == TOOL:
        return TOOL
    return AGENT if role == agent_role else PERSONA


def _call(call: Mapping[str, Any]) -> Message:
    return {"type": "function", "function": {"name": call["name"], "arguments": call["input"]}}


def _ended_by_agent(messages: list[Message]) -> list[Message]:
    last = next((n for n in range(len(messages), 0, -1) if messages[n - 1]["role"] == AGENT), 0)
    return messages[:last]
