"""The part of the persona's lines that an agent earned: a model reads no fact that none of its questions opened.

Whoever sends a transcript writes the persona's lines in it, too, and could let it blurt out everything. So a sentence
that tells a topic which was neither volunteered nor earned by then, as the replay of the transcript has it, is not
read. What the server's own persona says in an episode is earned, and stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from personas.reading.matcher import Matcher
from personas.reading.telling import told
from personas.text.sentences import sentences
from reward_server.judges.base import Case
from reward_server.transcripts.transcript import Transcript

_NEVER = 1 << 30


def as_earned(cases: Sequence[Case], matcher: Matcher) -> list[Transcript]:
    """The transcripts of cases without what their agents did not earn; blocking, the matcher may run a model."""
    return [_earned(case, matcher) for case in cases]


def _earned(case: Case, matcher: Matcher) -> Transcript:
    transcript = case.transcript
    lines = [transcript.opening, *(turn.persona for turn in transcript.turns)]
    closed = [_closed(case, turn) for turn in range(len(lines))]
    kept = _without(case, matcher, [line or "" for line in lines], closed)
    turns = tuple(
        turn if turn.persona is None else replace(turn, persona=line)
        for turn, line in zip(transcript.turns, kept[1:], strict=True)
    )
    return Transcript(None if transcript.opening is None else kept[0], turns)


def _closed(case: Case, turn: int) -> tuple[str, ...]:
    """The topics that nobody may have told by this turn."""
    return tuple(topic.id for topic in case.scenario.case.topics if case.record.spoken.get(topic.id, _NEVER) > turn)


def _without(case: Case, matcher: Matcher, lines: Sequence[str], closed: Sequence[tuple[str, ...]]) -> list[str]:
    """The lines without the sentences that tell closed topics; each round finds one sentence a topic."""
    kept = list(lines)
    while True:
        found = told(case.scenario.case, matcher, list(zip(kept, closed, strict=True)))
        shorter = [
            _cut(line, {each.quote for each in telling.values()}) for line, telling in zip(kept, found, strict=True)
        ]
        if shorter == kept:
            return kept
        kept = shorter


def _cut(line: str, quotes: set[str]) -> str:
    if not quotes:
        return line
    if line in quotes:
        return ""
    return " ".join(sentence for sentence in sentences(line) if sentence not in quotes)
