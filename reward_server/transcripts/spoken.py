"""Reads a text as the agent's model wrote it: without its reasoning, with the tool calls in it.

The one place that knows these formats. A reasoning model thinks in `<think>…</think>` before it speaks; where it was
cut off there is no end, and where a template began for it there is no beginning. Models that are taught with a Hermes
template write a call as `<tool_call>{"name", "arguments"}</tool_call>`. What is thought is neither heard nor scored. A
call that cannot be read is a call that fits no tool: the mistake of the agent, not of the request.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pydantic import ValidationError
from pydantic_core import from_json

from trainer_client.wire import MAX_CONTENT_CHARACTERS, ToolCall
from trainer_client.wire.base import UNREADABLE
from trainer_client.wire.normalised import MAX_NORMALISED_CHARACTERS, normalised_length

_THOUGHT = re.compile(r"<(/?)(?:think|thinking|thought|reasoning)>|\[(/?)THINK\]")
_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
UNREAD_CALL = "tool_call"
"""The name of a call whose own cannot be read."""
MOST_CALLS = 16
"""Of one text, as of one message; more are not read."""


@dataclass(frozen=True, slots=True)
class ParsedUtterance:
    """A text of an agent, read."""

    text: str
    """What it says."""
    calls: tuple[ToolCall, ...] = ()
    """The tools that it calls in the text."""


def utterance(content: str) -> ParsedUtterance:
    """Parse a text into what is said and done."""
    text = said(content)
    if "<tool_call>" not in text:
        return ParsedUtterance(text)
    calls = tuple(_call(match[1]) for match in list(_CALL.finditer(text))[:MOST_CALLS])
    return ParsedUtterance(_CALL.sub("", text).strip(), calls)


def said(content: str) -> str:
    """The text without its reasoning; one that has none stays as it is."""
    if _THOUGHT.search(content) is None:
        return content
    return "".join(_pieces(content)).strip()


def is_mark(text: str) -> bool:
    """True if a text is a mark that is read here, and no token of a chat template."""
    return text in ("<tool_call>", "</tool_call>") or _THOUGHT.fullmatch(text) is not None


def of_a_rollout(reply: str) -> str:
    """The part of a policy's reply that is heard: one that says too much says nothing.

    A training run sends whatever its policy makes, and stops, or loses the whole batch, where one reply is refused.
    """
    heard = said(reply)
    too_long = len(heard) > MAX_CONTENT_CHARACTERS or normalised_length(heard) > MAX_NORMALISED_CHARACTERS
    return "" if too_long else heard


def _pieces(content: str) -> list[str]:
    """The parts outside of reasoning. An end without a beginning makes reasoning of all before it."""
    kept: list[str] = []
    at, is_thinking = 0, False
    for sign in _THOUGHT.finditer(content):
        is_end = bool(sign[1] or sign[2])
        if is_end and not is_thinking:
            kept.clear()
        elif not is_end and not is_thinking:
            kept.append(content[at : sign.start()])
        if is_end or not is_thinking:
            at = sign.end()
        is_thinking = not is_end
    return kept if is_thinking else [*kept, content[at:]]


def _call(text: str) -> ToolCall:
    try:
        return ToolCall.model_validate({"function": from_json(text.strip(), allow_inf_nan=False)})
    except (ValueError, ValidationError):
        return ToolCall(name=UNREAD_CALL, input={UNREADABLE: ""})
