"""Segments that learned judges read of a conversation: its sentences and pieces of code, by whose credit they are.

In a scenario, where agents are trained for a reward, an agent earns by the answers it got: nothing pays but to have
the other party say something else. All answers together are one message, without sentences that hold no meaningful
word and without the phrases that any persona may say, so a turn that brings nothing changes nothing. The agent's own
words (`remarks`) can only cost, see `misconduct`, unless a model was trained to credit words, too.

Elsewhere the other party's words are given, and the agent's are judged. Texts are in plain form
(`personas.text.plain`); sentences said before and markup of chat templates and verdicts are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from personas.case.library import load_temperaments
from personas.text.memory import remembered
from personas.text.sentences import sentences as split
from personas.text.wording import content_words, normal
from reward_server.reward_models.conversation import Conversation, Party, Reads
from reward_server.transcripts.markup import has_markup

VERSION = "segments/1"
"""Part of every feature version: changes whenever a message may be read differently."""
MAX_SEGMENTS = 48
"""So many sentences of a message are read, from both of its ends; a page of text costs no more than this."""
MAX_CODE_CHARS = 600
MAX_REMARKS = 512
"""So many sentences of an agent's own are read; who says more than that says the worst there is (`features`)."""
_SEAM = re.compile(r"[^\w\s'.!?-]+|\s(?=[A-Z])")
_CODE = re.compile(r"```[\w+-]*\n?(.*?)(?:```|$)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class MessageSegments:
    """The segments of one message."""

    party: Party
    """Whose credit it is; an answer that an agent got in a scenario is the agent's."""
    segments: tuple[str, ...]
    """Sentences or pieces of code, in order; empty where nothing in it counts."""


def read(conversation: Conversation, reads: Reads = "answers") -> tuple[MessageSegments, ...]:
    """The conversation as learned judges read it, in order."""
    return _answers(conversation) if by_answers(conversation, reads) else _words(conversation)


def by_answers(conversation: Conversation, reads: Reads) -> bool:
    """True if an agent is credited with the answers it got, if any, and with none of its own words."""
    return reads == "answers" and bool(conversation.scenario)


def is_answered(conversation: Conversation) -> bool:
    """True if the other party says anything after the agent's first turn."""
    parties = [said.party for said in conversation.turns]
    return "agent" in parties and "persona" in parties[parties.index("agent") :]


def _answers(conversation: Conversation) -> tuple[MessageSegments, ...]:
    """The other party's last message, and all that it told, as one message.

    When it told what, and in how many turns, is not read: a turn more, or another last word, would change too much.
    """
    heard: set[str] = set()
    opening: list[MessageSegments] = []
    told: list[str] = []
    spoke = False
    for said in conversation.turns:
        if said.party == "agent":
            spoke = True
            continue
        segments = _within_limits(sentences(said.text))
        if spoke:
            segments = [each for each in _fresh(segments, heard) if _tells(each)]
            told += segments
        else:
            opening.append(MessageSegments("persona", tuple(segments)))
        heard.update(map(normal, segments))
    return (*opening, MessageSegments("agent", tuple(told)))


def _tells(sentence: str) -> bool:
    """True if it has a meaningful word and is no phrase of a temperament, which tells nothing of a case."""
    return bool(content_words(sentence)) and normal(sentence) not in _phrases()


@cache
def _phrases() -> frozenset[str]:
    spoken = (line for each in load_temperaments().values() for lines in dict(each.phrases).values() for line in lines)
    return frozenset(normal(sentence) for line in spoken for sentence in split(line))


def remarks(conversation: Conversation) -> tuple[str, ...]:
    """All that the agent said, each piece once; more than MAX_REMARKS mean that there was more than is read.

    Sentences are cut at signs and before capital letters: a text put before or behind one shall not change it.
    """
    found: dict[str, None] = {}
    for said in conversation.turns:
        if said.party == "agent":
            pieces = (piece.strip() for sentence in split(said.text) for piece in _SEAM.split(sentence))
            found.update(dict.fromkeys(piece for piece in pieces if any(map(str.isalnum, piece))))
            if len(found) > MAX_REMARKS:
                break
    return tuple(found)


def _words(conversation: Conversation) -> tuple[MessageSegments, ...]:
    """The messages of both parties; in a scenario, without turns that say nothing."""
    heard: set[str] = set()
    messages: list[MessageSegments] = []
    for said in conversation.turns:
        segments: Sequence[str] = sentences(said.text)
        if said.party == "agent":
            segments = [each for each in _fresh(segments, heard) if not has_markup(each)]
            if conversation.scenario:
                segments = [each for each in segments if content_words(each)]
                if not segments:
                    continue
        segments = tuple(_within_limits(segments))
        heard.update(map(normal, segments))
        messages.append(MessageSegments(said.party, segments))
    return tuple(messages)


def _fresh(segments: Sequence[str], heard: set[str]) -> list[str]:
    """Those said neither earlier in the conversation nor twice in this message."""
    fresh: dict[str, str] = {}
    for segment in segments:
        key = normal(segment)
        if key not in heard or len(key.split()) <= 1:
            fresh.setdefault(key, segment)
    return list(fresh.values())


@remembered(4096)
def sentences(text: str) -> tuple[str, ...]:
    """The sentences of a text, and its pieces of code as one segment each."""
    return tuple(_segments(text))


def _segments(text: str) -> Iterator[str]:
    start = 0
    for block in _CODE.finditer(text):
        yield from split(text[start : block.start()])
        # A long piece of code by its beginning.
        if line := " ".join(block.group(1).split())[:MAX_CODE_CHARS]:
            yield line
        start = block.end()
    yield from split(text[start:])


def _within_limits(segments: Sequence[str]) -> Sequence[str]:
    if len(segments) <= MAX_SEGMENTS:
        return segments
    return [*segments[: MAX_SEGMENTS // 2], *segments[-(MAX_SEGMENTS // 2) :]]
