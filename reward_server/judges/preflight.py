"""Decides about a transcript before a language model is asked anything about it.

A transcript that holds the markup of a chat template or a verdict, or that is no conversation, is never sent: a model
that was never asked cannot be talked into anything. What would earn points is not met and what would cost points is,
on the offending line, whatever the request's weights and gates.
"""

from __future__ import annotations

from reward_server.errors import BodyTooLarge
from reward_server.judges.base import MAX_QUOTE, Evidence, Verdict, VerdictStatus
from reward_server.judges.prompt import TOO_LONG
from reward_server.judges.rendering import MAX_SAID, size_of
from reward_server.transcripts.emptiness import is_degenerate
from reward_server.transcripts.markup import has_markup, tool_texts
from reward_server.transcripts.transcript import Transcript
from scenarios.schema import Criterion

VERSION = "preflight/2"


def offence_in(transcript: Transcript) -> Evidence | None:
    """The first agent line with such markup, else the first line of what is no conversation.

    Raises:
        BodyTooLarge: it has more than `MAX_SAID` characters, and was not looked through.
    """
    if size_of(transcript) > MAX_SAID:
        raise BodyTooLarge(TOO_LONG)
    for number, turn in enumerate(transcript.turns, 1):
        if has_markup(turn.agent):
            line = next((text_line for text_line in turn.agent.splitlines() if has_markup(text_line)), turn.agent)
            return Evidence(number, "agent", line[:MAX_QUOTE])
        if any(map(has_markup, tool_texts(turn))):
            return Evidence(number, "agent", turn.agent[:MAX_QUOTE])
    if is_degenerate(transcript):
        return Evidence(1, "agent", transcript.turns[0].agent[:MAX_QUOTE] if transcript.turns else "")
    return None


def condemned(criterion: Criterion, offence: Evidence, judge: str) -> Verdict:
    """The verdict on a criterion about a transcript that is not sent: never to its advantage."""
    if criterion.points > 0:
        return Verdict(criterion.id, VerdictStatus.UNMET, 0.0, (), judge, VERSION)
    return Verdict(criterion.id, VerdictStatus.MET, 1.0, (offence,), judge, VERSION)
