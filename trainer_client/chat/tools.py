"""Tools of a scenario for a chat template, and the calls a policy writes.

Models write calls in a handful of ways; all of these are read, whichever model it is. What is no whole
call stays text: the persona sees it, and the reward says what it was worth.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from trainer_client.wire import Message
from trainer_client.wire.base import ToolCall
from trainer_client.wire.episodes import ToolDefinition

_TAGGED = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)
_LISTED = re.compile(r"\[TOOL_CALLS\]\s*(\[.*\])", re.DOTALL)
_XML = re.compile(r"(?:<tool_call>\s*)?<function=([^>\s]+)>(.*?)</function>(?:\s*</tool_call>)?", re.DOTALL)
_XML_FIELD = re.compile(r"<parameter=([^>\s]+)>\n?(.*?)\n?</parameter>", re.DOTALL)
_PYTHON_TAG = "<|python_tag|>"
MAX_CALLS = 16
TAKEN = "Received."
"""What the environment answers to a call, in training as where the server plays an agent; what became of a call is in
the reward."""


class Result(NamedTuple):
    """The answer to a call: the tool's name and a text."""

    name: str
    text: str


def taken(calls: Sequence[Mapping[str, Any]]) -> tuple[Result, ...]:
    """The environment's answers to these."""
    return tuple(Result(call["name"], TAKEN) for call in calls)


def results_of(message: Message) -> tuple[Result, ...]:
    """The answers to the calls in the policy's turn."""
    return tuple(Result(call.name, TAKEN) for call in message.tool_calls or ())


def in_chat(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A conversation of the server or the client in OpenAI's form, with the results of its calls."""
    shown: list[dict[str, Any]] = []
    first = next((place for place, message in enumerate(messages) if message["role"] != "system"), 0)
    for place, message in enumerate(messages, -first):
        calls = message.get("tool_calls") or ()
        if not calls:
            shown.append({"role": message["role"], "content": message["content"]})
            continue
        ids = [f"call_{place}_{number}" for number in range(len(calls))]
        made = [
            {
                "id": number,
                "type": "function",
                "function": {"name": call["name"], "arguments": json.dumps(call["input"], ensure_ascii=False)},
            }
            for number, call in zip(ids, calls, strict=True)
        ]
        shown.append({"role": message["role"], "content": message["content"] or None, "tool_calls": made})
        shown += [{"role": "tool", "tool_call_id": number, "content": TAKEN} for number in ids]
    return shown


def for_template(tools: Sequence[ToolDefinition]) -> list[dict[str, Any]]:
    """As chat templates take them: the shape of OpenAI's functions."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.id,
                "description": tool.description or tool.name,
                "parameters": tool.json_schema or _choice(tool.options or []),
            },
        }
        for tool in tools
    ]


def in_words(tools: Sequence[Mapping[str, Any]]) -> str:
    """For a template that has no place for tools: the same, as part of a system prompt."""
    listed = "\n".join(json.dumps(tool["function"], ensure_ascii=False) for tool in tools)
    return (
        "You may call these tools, each with a JSON object:\n"
        f"{listed}\n"
        'To call one, write <tool_call>{"name": "...", "arguments": {...}}</tool_call> in your turn.'
    )


def tagged(call: Mapping[str, Any]) -> str:
    """A call as `in_words` asks for it."""
    return f"<tool_call>{json.dumps(call, ensure_ascii=False)}</tool_call>"


def says(written: str, text: str, calls: Sequence[Mapping[str, Any]]) -> bool:
    """True if a turn that is written like this is read as this text and these calls (name, arguments)."""
    read = message_of(written)
    made = [{"name": call.name, "arguments": call.input} for call in read.tool_calls or ()]
    return made == [dict(call) for call in calls] and read.content == text.strip()


def message_of(text: str) -> Message:
    """The policy's turn as the server takes it: the calls in it, and the rest as text.

    Raises pydantic's ValidationError where the text is longer than the server takes.
    """
    calls: list[ToolCall] = []
    rest = text
    for written, call in _written(text):
        read = _read(call)
        if read is not None and len(calls) < MAX_CALLS:
            calls.append(read)
            rest = rest.replace(written, "", 1)
    return Message(role="assistant", content=rest.strip() if calls else text, tool_calls=calls or None)


def _choice(options: Sequence[str]) -> dict[str, Any]:
    return {"type": "object", "properties": {"value": {"type": "string", "enum": [*options]}}, "required": ["value"]}


def _written(text: str) -> Iterator[tuple[str, Any]]:
    """The parts that look like calls: as written, and what each holds."""
    for found in _TAGGED.finditer(text):
        yield found[0], _json(found[1])
    for found in _XML.finditer(text):
        fields = {name: _value(value) for name, value in _XML_FIELD.findall(found[2])}
        yield found[0], {"name": found[1], "arguments": fields}
    for found in _LISTED.finditer(text):
        calls = _json(found[1])
        whole = [calls] if not isinstance(calls, list) else calls
        for number, call in enumerate(whole):
            yield found[0] if number == 0 else "", call
    bare = text.strip().removeprefix(_PYTHON_TAG).strip()
    if bare.startswith("{") and bare.endswith("}"):
        yield text, _json(bare)
    elif bare.startswith("[{") and bare.endswith("}]"):  # Mistral's, without the control token that no policy samples
        for number, call in enumerate(_json(bare) or ()):
            yield text if number == 0 else "", call


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _value(text: str) -> Any:
    found = _json(text)
    return text if found is None else found


def _read(call: Any) -> ToolCall | None:
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return None
    given = call.get("arguments", call.get("parameters"))
    try:
        return ToolCall(name=call["name"], input=_json(given) if isinstance(given, str) else given)
    except ValidationError:
        return None
