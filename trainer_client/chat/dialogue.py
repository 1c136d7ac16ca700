"""A chat in the form of OpenAI's messages, read as what a policy hears and says by turns.

Files, prompts and the endpoint of a policy come here, so that tool calls, their results and thoughts mean the same in
all of them. A call without a `tool` message is answered as the environment answers it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainer_client.chat.thoughts import parted
from trainer_client.chat.tools import Result, taken

ROLES = ("system", "developer", "user", "assistant", "tool")
_THOUGHT_KEYS = ("reasoning_content", "reasoning", "thinking")


class ChatError(ValueError):
    """Messages that are no chat."""


@dataclass(frozen=True)
class ChatTurn:
    """A turn of the policy in a chat."""

    text: str
    calls: tuple[Mapping[str, Any], ...] = ()
    """Name and arguments of each."""
    thought: str = ""
    place: int = 0
    """Of its message among all of them."""


@dataclass(frozen=True)
class Dialogue:
    """Turns of the policy and what it hears before each; after the last one it may hear something more."""

    system: str | None
    heard: tuple[str | None, ...]
    """None: only the results of the calls before."""
    said: tuple[ChatTurn, ...] = ()
    results: tuple[tuple[Result, ...], ...] = field(default=())
    """Of the calls of each turn."""

    @property
    def awaits_policy(self) -> bool:
        """True if the policy speaks next."""
        return len(self.heard) > len(self.said)


def read_chat(messages: Any, name: str = "messages") -> Dialogue:
    """The dialogue in a list of messages; `name` is how an error calls it. Raises ChatError."""
    if not isinstance(messages, list) or not messages:
        raise ChatError(f"`{name}` must be a non-empty list of messages")
    system: list[str] = []
    heard: list[str | None] = []
    said: list[ChatTurn] = []
    answers: list[list[str]] = []
    for place, message in enumerate(messages):
        role, text = _role(message, name), _text(message, name)
        if role == "system":
            system.append(text)
        elif role == "tool":
            _answer(text, heard, said, answers)
        elif role == "user":
            if len(heard) > len(said):
                raise ChatError(_ORDER)
            heard.append(text)
        else:
            if len(heard) == len(said):
                if not said or not answers[-1]:
                    raise ChatError(_ORDER)
                heard.append(None)
            said.append(_turn(message, text, place, name))
            answers.append([])
    if said and len(heard) == len(said) and answers[-1]:
        heard.append(None)  # the policy has its results and goes on
    return Dialogue(
        "\n\n".join(system) or None,
        tuple(heard),
        tuple(said),
        tuple(_results(turn, texts) for turn, texts in zip(said, answers, strict=True)),
    )


_ORDER = (
    "after the system prompt, user and assistant messages must alternate, and the user begins; only after `tool`"
    " messages may the assistant go on"
)


def _answer(text: str, heard: Sequence[str | None], said: Sequence[ChatTurn], answers: Sequence[list[str]]) -> None:
    if not said or len(heard) > len(said) or len(answers[-1]) >= len(said[-1].calls):
        raise ChatError("a `tool` message must follow the assistant message that made the call, one for each call")
    answers[-1].append(text)


def _results(turn: ChatTurn, texts: Sequence[str]) -> tuple[Result, ...]:
    named = [Result(call["name"], text) for call, text in zip(turn.calls, texts, strict=False)]
    return (*named, *taken(turn.calls[len(named) :]))


def _role(message: Any, name: str) -> str:
    role = message.get("role") if isinstance(message, dict) else None
    if role not in ROLES:
        raise ChatError(f"a message of `{name}` must have the role system, user, assistant or tool")
    return "system" if role == "developer" else str(role)


def _text(message: Mapping[str, Any], name: str) -> str:
    content = message.get("content")
    if isinstance(content, list) and all(isinstance(part, dict) and part.get("type") == "text" for part in content):
        content = "\n".join(str(part.get("text", "")) for part in content)
    if content is None and message.get("tool_calls"):
        content = ""
    if not isinstance(content, str):
        raise ChatError(f"a message of `{name}` has no text in `content`")
    return content


def _turn(message: Mapping[str, Any], text: str, place: int, name: str) -> ChatTurn:
    beside = next((message[key] for key in _THOUGHT_KEYS if isinstance(message.get(key), str)), "")
    thought, said = parted(text)
    return ChatTurn(said, tuple(_calls(message, name)), thought or beside.strip(), place)


def _calls(message: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The tool calls of a message as name and arguments."""
    given = message.get("tool_calls") or []
    calls = []
    for call in given if isinstance(given, list) else [None]:
        function = call.get("function", call) if isinstance(call, dict) else {}
        called = function.get("name") if isinstance(function, dict) else None
        arguments = function.get("arguments", function.get("input")) if isinstance(function, dict) else None
        with contextlib.suppress(ValueError, RecursionError):
            arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
        if not isinstance(called, str) or not isinstance(arguments, dict):
            raise ChatError(
                f'a tool call of `{name}` must be {{"function": {{"name": ..., "arguments": {{...}}}}}}, as of OpenAI'
            )
        calls.append({"name": called, "arguments": arguments})
    return calls


def read_tools(found: Any) -> list[dict[str, Any]]:
    """Tools in the form of OpenAI; raises ChatError."""
    found = found or []
    for tool in found if isinstance(found, list) else [None]:
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise ChatError('`tools` must be a list of {"type": "function", "function": {"name": ...}}')
    return list(found)
