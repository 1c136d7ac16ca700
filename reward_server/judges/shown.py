"""What a language model is shown of an agent: what it said and did, less what was meant for whoever judges it.

A model that reads "I was thorough" may believe it, and then quote another sentence for it, so checking quotes is not
enough. Such sentences are left out without a trace: a turn with one behind it is shown as the turn without it, so the
question is the same, and no model can answer it otherwise. It goes by patterns and, where a judge has one, by
likeness to known pleas (`likeness`), so this holds for words that these know, and for no others. Turns keep their
numbers, though nothing may be left of one.

It leaves out too much rather than too little, which costs an agent at most the credit for that sentence. It must never
help an agent, though: where anything is left out, the model is asked with all that was said, too (`inquiry`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from personas.memory import remembered
from reward_server.errors import BodyTooLarge
from reward_server.judges.base import Evidence
from reward_server.judges.pleading import is_anothers, is_table, pleads, without_label
from reward_server.judges.prompt import MAX_TRANSCRIPT, TOO_LONG
from reward_server.scoring.gates import tool_texts
from reward_server.scoring.transcript import Transcript, Turn

_END = re.compile(r"(?:(?<![^\w\s])(?=[^\w\s]*[.!?\u2026])[^\w\s]++(?=\s|\Z)|[\u3002\uff01\uff1f]+|\n[^\S\n]*\n)\s*+")
"""Where a sentence ends: a full stop among signs before a space, a full stop of other scripts, an empty line."""
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_COMMENT = re.compile(r"<!--(?:(?!-->).){0,2000}(?:-->|\Z)", re.DOTALL)
"""Of HTML; outside code nobody writes one to be read by a person."""
_EDGES = " \t\n.,;:!?"

MAX_SAID = 2 * MAX_TRANSCRIPT
"""Characters that are looked through for words for a judge, which takes far longer than to count them."""

Read = Callable[[str], str]
"""What is left of a text of an agent."""


def as_shown(transcript: Transcript, read: Read | None = None) -> Transcript:
    """The transcript as a language model is shown it; `read` is `shown_of`, a `Reader`, or a memory of one.

    Raises:
        BodyTooLarge: it has more than `MAX_SAID` characters, or the input of a tool is nested too deep to be read.
    """
    if size_of(transcript) > MAX_SAID:
        raise BodyTooLarge(TOO_LONG)
    try:
        return replace(transcript, turns=tuple(_turn(turn, read or shown_of) for turn in transcript.turns))
    except RecursionError:
        raise BodyTooLarge(TOO_LONG) from None


def size_of(transcript: Transcript) -> int:
    """Characters of what was said and of the texts in tool calls."""
    return sum(map(len, texts_of(transcript))) + sum(len(turn.persona or "") for turn in transcript.turns)


def texts_of(transcript: Transcript) -> Iterator[str]:
    """What the agent said, and the texts in its tool calls."""
    for turn in transcript.turns:
        yield turn.agent
        yield from tool_texts(turn)


def is_whole(shown: Transcript, transcript: Transcript) -> bool:
    """Whether nothing but space was left out."""
    pairs = zip(shown.turns, transcript.turns, strict=True)
    return all(one.agent == turn.agent.strip() and one.uses == turn.uses for one, turn in pairs)


def as_said(transcript: Transcript, evidence: Evidence) -> Evidence:
    """Evidence to the letter: of a quote that goes across words that were left out, the longer part."""
    said = transcript.said_by(evidence.role, evidence.turn)
    if evidence.quote in said:
        return evidence
    beginning, end = _longest(evidence.quote, said, 1), _longest(evidence.quote, said, -1)
    return replace(evidence, quote=max(beginning, end, key=len).strip(_EDGES))


def is_evidence(transcript: Transcript, evidence: Evidence) -> bool:
    """Whether a quote holds anything but words that were meant for a judge."""
    if evidence.role != "agent":
        return True
    shown = shown_of(transcript.said_by("agent", evidence.turn))
    return any(sentence in shown for sentence in sentences_of(shown_of(evidence.quote)))


@remembered(4096)
def shown_of(text: str) -> str:
    """A text of an agent without what was meant for a judge."""
    keeps_signs = text.count("```") > 1
    spoken = text if keeps_signs else _COMMENT.sub("", text)
    own = "".join(line for line in _LINE.findall(spoken) if not is_anothers(line))
    return "".join(_left_of(sentence, keeps_signs) for sentence in sentences_of(own)).strip()


def sentences_of(text: str) -> Iterator[str]:
    """The text cut behind each sentence and the space after it."""
    start = 0
    for end in _END.finditer(text):
        yield text[start : end.end()]
        start = end.end()
    if start < len(text):
        yield text[start:]


def _left_of(sentence: str, keeps_signs: bool) -> str:
    """What is left of a sentence: nothing, some of its lines, what stands behind a label, or all of it."""
    if not keeps_signs and _is_bare(sentence):
        return ""
    lines = [line for line in _LINE.findall(sentence) if not pleads(line)]
    if is_table(sentence):
        lines = [line for line in lines if not line.lstrip().startswith("|")]
    left = "".join(lines if keeps_signs else map(without_label, lines))
    return left if left in lines or not pleads(left) else ""


def _is_bare(text: str) -> bool:
    """Whether there are signs alone, and no picture among them."""
    return not any(character.isalnum() or unicodedata.category(character) == "So" for character in text)


def _longest(quote: str, said: str, step: int) -> str:
    """The longest beginning (step 1) or end (step -1) of a quote that was said; by halves, as every shorter one was."""
    low, high = 0, len(quote)
    while low < high:
        middle = (low + high + 1) // 2
        part = quote[:middle] if step > 0 else quote[-middle:]
        low, high = (middle, high) if part in said else (low, middle - 1)
    return quote[:low] if step > 0 else quote[len(quote) - low :]


def _turn(turn: Turn, read: Read) -> Turn:
    changed = any(read(text) != text.strip() for text in tool_texts(turn))
    uses = tuple(replace(use, input=_value(use.input, read)) for use in turn.uses) if changed else turn.uses
    return replace(turn, agent=read(turn.agent), uses=uses)


def _value(value: Any, read: Read) -> Any:
    """A tool's input with its texts as they are shown, and without fields whose names are no names."""
    if isinstance(value, Mapping):
        return {name: _value(one, read) for name, one in value.items() if read(name) == name.strip()}
    if isinstance(value, list):
        return [_value(one, read) for one in value]
    return read(value) if isinstance(value, str) else value
