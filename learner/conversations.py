"""Conversations and preference pairs of a file, as tokens: what is learned without a server.

    sft      {"messages": [...]}
    dpo, ipo {"prompt": [...] or text, "chosen": [...] or text, "rejected": [...] or text, "margin": 0.4}

Messages have the roles system, user, assistant and tool; an assistant's may have `tool_calls` as OpenAI writes them,
and thoughts in `reasoning_content` or `<think>`. `tools` of a row are optional and go where the chat template has a
place for them, as in a rollout. Without `prompt`, what `chosen` and `rejected` begin with alike is the prompt. Of a
conversation the assistant's turns are learned, of a pair those after the prompt.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from learner.display import Say, silent
from learner.rows import RowError, read_rows
from learner.types import Segment, rows_in
from trainer_client.chat.dialogue import Dialogue, read_chat, read_tools
from trainer_client.chat.tokens import Renderer, Tokenizer

Segments = tuple[Segment, ...]


@dataclass(frozen=True)
class ContinuationPair:
    """A better and a worse continuation of one prompt."""

    chosen: Segments
    rejected: Segments
    margin: float = 1.0


def read_conversations(
    path: Path,
    renderer: Renderer,
    tokenizer: Tokenizer,
    context: int | None = None,
    *,
    skip_bad: bool = False,
    say: Say = silent,
) -> list[Segments]:
    """All rows of a file for maximum likelihood; `context` is how many tokens the model has positions for."""

    def read(row: Mapping[str, Any]) -> Segments:
        dialogue, tools = read_chat(row.get("messages")), read_tools(row.get("tools"))
        return _fitting(as_segments(dialogue, renderer, tokenizer, tools=tools), context)

    return read_rows(path, read, skip_bad=skip_bad, say=say)


def read_pairs(
    path: Path,
    renderer: Renderer,
    tokenizer: Tokenizer,
    context: int | None = None,
    *,
    skip_bad: bool = False,
    say: Say = silent,
) -> list[ContinuationPair]:
    """All rows of a preference file; ties (a margin of 0) say nothing and are left out.

    `context` is how many tokens the model has positions for.
    """

    def read(row: Mapping[str, Any]) -> ContinuationPair:
        pair = pair_of(row, renderer, tokenizer)
        for side in (pair.chosen, pair.rejected):
            _fitting(side, context)
        return pair

    kept = [pair for pair in read_rows(path, read, skip_bad=skip_bad, say=say) if pair.margin > 0]
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


def as_segments(
    dialogue: Dialogue,
    renderer: Renderer,
    tokenizer: Tokenizer,
    learned_from: int = 0,
    *,
    tools: Sequence[Mapping[str, Any]] = (),
) -> Segments:
    """A conversation as a rollout would have recorded it; the assistant's turns from the message `learned_from` on are
    learned."""
    here = renderer.within(dialogue.system, tools) if dialogue.system or tools else renderer
    said: list[str] = []
    segments: list[Segment] = []
    given: list[int] = []
    for number, (turn, heard) in enumerate(zip(dialogue.said, dialogue.heard, strict=False)):
        forked = bool(said) and here.rewrites(said[-1])
        if forked or not said:
            given += here.prompt(dialogue.heard[: number + 1], said, dialogue.results)
        else:
            given += here.suffix(heard, ended=True, results=dialogue.results[number - 1])
        said.append(here.written(turn.text, turn.calls, turn.thought))
        ids = (*tokenizer.encode(said[-1], add_special_tokens=False, verbose=False), here.end_id)
        if turn.place < learned_from:
            given = [] if here.rewrites(said[-1]) else [*given, *ids]
            continue
        _check_spelled(ids, here, tokenizer)
        segments += [Segment(tuple(given), fork=forked), Segment(ids, (0.0,) * len(ids))]
        given = []
    if not segments:
        raise RowError("there is no assistant message to learn from")
    return tuple(segments)


def _check_spelled(ids: Sequence[int], renderer: Renderer, tokenizer: Tokenizer) -> None:
    """Refuse a turn that no policy could sample."""
    control = renderer.control_in(ids)
    if control is None:
        return
    if control == getattr(tokenizer, "unk_token", None):
        raise RowError(f"the tokenizer of the model cannot spell an assistant message (it has {control!r} there)")
    raise RowError(f"an assistant message contains the control token {control!r}")


def pair_of(row: Mapping[str, Any], renderer: Renderer, tokenizer: Tokenizer) -> ContinuationPair:
    """One row of a preference file; raises RowError or ChatError where it cannot be learned from."""
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
    tools = read_tools(row.get("tools"))
    chosen = as_segments(read_chat(better, "chosen"), renderer, tokenizer, start, tools=tools)
    rejected = as_segments(read_chat(worse, "rejected"), renderer, tokenizer, start, tools=tools)
    return ContinuationPair(chosen, rejected, float(margin))


def _messages(row: Mapping[str, Any], name: str, role: str) -> list[Any]:
    found = row.get(name)
    if isinstance(found, str):
        found = [{"role": role, "content": found}]
    if not isinstance(found, list) or not found:
        raise RowError(f"`{name}` must be a list of messages or a text")
    return found
