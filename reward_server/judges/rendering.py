"""Shows a language model the agent's turns in plain form, without sentences about scoring or simulation.

A model that reads "I was thorough" may believe it, so what the reader takes for talk about the evaluation (`Act.META`)
is left out without a trace; such a conversation is capped by a gate besides. Turns keep their numbers, though nothing
may be left of one. Markup of chat templates is never shown at all (`preflight`).
"""

from __future__ import annotations

from dataclasses import replace

from personas.case.compiled import CompiledCase
from personas.reading.acts import Act
from personas.reading.reader import Reader
from personas.replay.replayer import turns_of
from personas.text.plain import plain
from reward_server.errors import BodyTooLarge
from reward_server.judges.prompt import MAX_TRANSCRIPT, TOO_LONG
from reward_server.transcripts.markup import tool_texts
from reward_server.transcripts.transcript import Transcript

MAX_SAID = 2 * MAX_TRANSCRIPT
"""Characters of a conversation that is read at all."""


def as_shown(transcript: Transcript, case: CompiledCase, reader: Reader | None) -> Transcript:
    """The transcript as a language model is shown it; blocking, because the reader may run a model.

    Without a reader nothing is left out.

    Raises:
        BodyTooLarge: it has more than `MAX_SAID` characters.
    """
    if size_of(transcript) > MAX_SAID:
        raise BodyTooLarge(TOO_LONG)
    texts = [plain(turn.agent) for turn in transcript.turns]
    if reader is not None:
        readings = reader.read(case, turns_of(transcript.opening, transcript.exchanges()))
        for number, reading in enumerate(readings):
            if reading.any(Act.META):
                texts[number] = " ".join(sentence.text for sentence in reading.sentences if not sentence.does(Act.META))
    turns = zip(transcript.turns, texts, strict=True)
    return replace(transcript, turns=tuple(replace(turn, agent=text) for turn, text in turns))


def size_of(transcript: Transcript) -> int:
    """Characters of what was said and of the texts in tool calls."""
    tools = sum(len(text) for turn in transcript.turns for text in tool_texts(turn))
    return tools + sum(len(turn.agent) + len(turn.persona or "") for turn in transcript.turns)
