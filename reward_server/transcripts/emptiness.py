"""Transcripts that are no conversation: silence, an echo, one line repeated."""

from __future__ import annotations

from collections.abc import Iterator

from personas.text.memory import remembered
from personas.text.plain import plain
from personas.text.wording import normal
from reward_server.transcripts.transcript import Transcript

TURNS_TO_JUDGE_BY = 3
"""A greeting is no offence: scope, stuffing, echoes and repetition are judged from this many agent turns on."""


def is_degenerate(transcript: Transcript) -> bool:
    """True if there is nothing of the agent's own in it."""
    texts = [words_alone(turn.agent) for turn in transcript.turns]
    if len(texts) < TURNS_TO_JUDGE_BY:
        return not any(text.strip() or turn.valid_tools for text, turn in zip(texts, transcript.turns, strict=True))
    return all(text == texts[0] for text in texts) or all(empty_turns(transcript))


def empty_turns(transcript: Transcript) -> Iterator[bool]:
    """Per turn, whether it is silence or an echo."""
    heard = [normal(transcript.opening or "")]
    for turn in transcript.turns:
        text = words_alone(turn.agent)
        # A silent turn that calls a tool does something; an echo is a whole line or a piece of one.
        yield any(text in line for line in heard) if text.strip() else not turn.valid_tools
        heard.append(normal(turn.persona or ""))


@remembered(8192, longest=10_000)
def words_alone(text: str) -> str:
    """Its words alone, as a reader sees them."""
    return normal(plain(text))
