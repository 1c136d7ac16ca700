"""Conversations and preference pairs of a file, as tokens: what is learned without a server.

    sft      {"messages": [...]}
    dpo, ipo {"prompt": [...] or text, "chosen": [...] or text, "rejected": [...] or text, "margin": 0.4}

Messages have the roles system, user and assistant; an assistant's may have `tool_calls` as OpenAI writes them. `tools`
of a row are optional and go where the chat template has a place for them, as in a rollout. Without `prompt`, what
`chosen` and `rejected` begin with alike is the prompt. Of a conversation the assistant's turns are learned, of a pair
those after the prompt. The first row that cannot be used ends the reading, with its number.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from learner.tokens import Renderer, TemplateError, Tokenizer
from learner.types import Segment, rows_in

Segments = tuple[Segment, ...]
T = TypeVar("T")


class RowError(ValueError):
    """A row of a file that cannot be learned from."""


@dataclass(frozen=True)
class Pair:
    """A better and a worse continuation of one prompt."""

    chosen: Segments
    rejected: Segments
    margin: float = 1.0


def read_conversations(
    path: Path, renderer: Renderer, tokenizer: Tokenizer, context: int | None = None
) -> list[Segments]:
    """All rows of a file for maximum likelihood; `context` is how many tokens the model has positions for."""

    def read(row: Mapping[str, Any]) -> Segments:
        messages, tools = _messages(row, "messages"), _tools(row)
        return _fitting(as_segments(messages, renderer, tokenizer, tools=tools), context)

    return [_numbered(path, number, functools.partial(read, row)) for number, row in _rows(path)]


def read_messages(path: Path, key: str, read: Callable[[list[dict[str, str]]], T]) -> list[T]:
    """What `read` makes of the `messages` of each row; its RowError gets the row's number, `key` names the setting."""
    return [
        _numbered(path, number, lambda row=row: read(_messages(row, "messages"))) for number, row in _rows(path, key)
    ]


def read_pairs(path: Path, renderer: Renderer, tokenizer: Tokenizer, context: int | None = None) -> list[Pair]:
    """All rows of a preference file; ties (a margin of 0) say nothing and are left out.

    `context` is how many tokens the model has positions for.
    """

    def read(row: Mapping[str, Any]) -> Pair:
        pair = pair_of(row, renderer, tokenizer)
        for side in (pair.chosen, pair.rejected):
            _fitting(side, context)
        return pair

    pairs = [_numbered(path, number, functools.partial(read, row)) for number, row in _rows(path)]
    kept = [pair for pair in pairs if pair.margin > 0]
    if not kept:
        raise RowError(f"{path}: all pairs are ties")
    return kept


def _fitting(conversation: Segments, context: int | None) -> Segments:
    """The same; RowError where a model of this context has no positions for it."""
    longest = max(sum(len(segment.ids) for segment in row) for row in rows_in(conversation))
    if context is not None and longest > context:
        raise RowError(
            f"{longest:,} tokens are more than the {context:,} of the model's context; shorten the row or leave it out"
        )
    return conversation


def check_file(path: Path) -> None:
    """Refuse a file that cannot be read, before a model is built for it; what is in its rows is read later."""
    _rows(path)


def as_segments(
    messages: Sequence[Mapping[str, Any]],
    renderer: Renderer,
    tokenizer: Tokenizer,
    learned_from: int = 0,
    *,
    tools: Sequence[Mapping[str, Any]] = (),
) -> Segments:
    """A conversation as a rollout would have recorded it; the assistant's turns from `learned_from` on are learned."""
    system = "\n\n".join(each["content"] for each in messages if each["role"] == "system") or None
    skipped = sum(each["role"] == "system" for each in messages[:learned_from])
    spoken = [each for each in messages if each["role"] != "system"]
    for place, message in enumerate(spoken):
        if message["role"] != ("assistant" if place % 2 else "user"):
            raise RowError("after the system prompt, user and assistant messages must alternate, and the user begins")
    here = renderer.within(system, tools) if system or tools else renderer
    heard: list[str] = []
    said: list[str] = []
    segments: list[Segment] = []
    forked = False
    given: list[int] = []
    for place, message in enumerate(spoken):
        if place % 2 == 0:
            heard.append(message["content"])
            forked = bool(said) and here.rewrites(said[-1])
            fresh = forked or not said
            given = [*given, *(here.prompt(heard, said) if fresh else here.suffix(heard[-1], ended=True))]
            continue
        said.append(here.with_calls(message["content"], message.get("tool_calls") or ()))
        ids = (*tokenizer.encode(said[-1], add_special_tokens=False, verbose=False), here.end_id)
        control = here.control_in(ids)
        if control is not None and place + skipped >= learned_from:
            if control == getattr(tokenizer, "unk_token", None):
                raise RowError(
                    f"the tokenizer of the model cannot spell an assistant message (it has {control!r} there)"
                )
            raise RowError(f"an assistant message contains the control token {control!r}")
        if place + skipped < learned_from:
            given = [] if here.rewrites(said[-1]) else [*given, *ids]
        else:
            segments += [Segment(tuple(given), fork=forked), Segment(ids, (0.0,) * len(ids))]
            given = []
    if not segments:
        raise RowError("there is no assistant message to learn from")
    return tuple(segments)


def pair_of(row: Mapping[str, Any], renderer: Renderer, tokenizer: Tokenizer) -> Pair:
    """One row of a preference file; raises RowError where it cannot be learned from."""
    better, worse = _messages(row, "chosen", "assistant"), _messages(row, "rejected", "assistant")
    if "prompt" in row:
        prompt = _messages(row, "prompt", "user")
        start = len(prompt)
        better, worse = [*prompt, *better], [*prompt, *worse]
    else:
        same = [a == b for a, b in zip(better, worse, strict=False)]
        start = same.index(False) if False in same else len(same)
    margin = row.get("margin", 1.0)
    if isinstance(margin, bool) or not isinstance(margin, int | float) or not (math.isfinite(margin) and margin >= 0):
        raise RowError("`margin` must be a finite number of at least 0")
    if better == worse:
        raise RowError("`chosen` and `rejected` are the same")
    chosen, rejected = (as_segments(side, renderer, tokenizer, start, tools=_tools(row)) for side in (better, worse))
    return Pair(chosen, rejected, float(margin))


def _messages(row: Mapping[str, Any], name: str, role: str | None = None) -> list[dict[str, Any]]:
    found = row.get(name)
    if isinstance(found, str) and role is not None:
        found = [{"role": role, "content": found}]
    if not isinstance(found, list) or not found:
        raise RowError(f"`{name}` must be a list of messages{' or a text' if role else ''}")
    for message in found:
        if not isinstance(message, dict) or not isinstance(message.get("content") or "", str):
            raise RowError(f"a message of `{name}` has no text in `content`")
        if message.get("role") not in ("system", "user", "assistant"):
            raise RowError(f"a message of `{name}` must have the role system, user or assistant")
        if not message.get("tool_calls") and not isinstance(message.get("content"), str):
            raise RowError(f"a message of `{name}` has no text in `content`")
    return [
        {"role": each["role"], "content": each.get("content") or "", "tool_calls": _calls(each, name)} for each in found
    ]


def _calls(message: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The tool calls of a message as name and arguments."""
    given = message.get("tool_calls") or []
    if given and message["role"] != "assistant":
        raise RowError(f"a message of `{name}` has `tool_calls` and is not the assistant's")
    calls = []
    for call in given if isinstance(given, list) else [None]:
        function = call.get("function", call) if isinstance(call, dict) else {}
        called, arguments = function.get("name"), function.get("arguments", function.get("input"))
        with contextlib.suppress(ValueError, RecursionError):
            arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
        if not isinstance(called, str) or not isinstance(arguments, dict):
            raise RowError(
                f'a tool call of `{name}` must be {{"function": {{"name": ..., "arguments": {{...}}}}}}, as of OpenAI'
            )
        calls.append({"name": called, "arguments": arguments})
    return calls


def _tools(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tools of a row, in the form of OpenAI."""
    found = row.get("tools") or []
    for tool in found if isinstance(found, list) else [None]:
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise RowError('`tools` must be a list of {"type": "function", "function": {"name": ...}}')
    return list(found)


def _rows(path: Path, key: str = "data.file") -> list[tuple[int, Mapping[str, Any]]]:
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise RowError(
            f"{key}: cannot read {path}: {getattr(error, 'strerror', None) or 'it is not UTF-8 text'}"
        ) from None
    rows: list[tuple[int, Mapping[str, Any]]] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            raise RowError(f"{path}, row {number}: not valid JSON") from None
        if not isinstance(row, dict):
            raise RowError(f"{path}, row {number}: not a JSON object")
        rows.append((number, row))
    if not rows:
        raise RowError(f"{path}: the file has no rows")
    return rows


def _numbered(path: Path, number: int, read: Any) -> Any:
    try:
        return read()
    except (RowError, TemplateError) as error:
        raise RowError(f"{path}, row {number}: {error}") from None
