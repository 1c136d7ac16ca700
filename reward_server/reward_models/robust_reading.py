"""Reads conversations for learned judges: what an agent achieved, or what it said without what it said to its judge.

In a scenario, where agents are trained for a reward, an agent earns by the answers it got: nothing pays but to have
the other party say something else. All answers together are one message, without small talk and without those that say
that a turn was not followed, so that a turn which brings nothing changes nothing, and one that brings little changes
little. Its own words (`remarks`) can only cost, see `misconduct`, unless a model was trained to credit words, too.

Elsewhere the other party's words are given, and the agent's are judged. A learned head likes whatever correlated with
its labels, so text that no person in the conversation would miss is dropped before anything is encoded or counted:
disguises, talk to the scorer, self-praise, openers that stand for an answer, word lists, another language, machine
text, and sentences said before. Appending such text to a turn leaves its reading as it was. Code, lists and figures
are read where the other party asked for them. A scenario whose model credits words is read in this way, too, without
small talk; code, lists and figures are then what the scenario calls for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from personas.acts import Kind, Sentence, sentences_of, split_sentences
from personas.disguise import undisguised
from personas.joints import recased, unglued
from personas.memory import remembered
from personas.wording import any_of, normal, plain, tokens
from reward_server.reward_models.conversation import Conversation, Party, Reads
from reward_server.reward_models.puzzled import is_puzzled
from reward_server.reward_models.small_talk import is_small_talk
from reward_server.scoring.gates import injects
from reward_server.scoring.judge_talk import ROLE_LINE, is_for_the_judge

VERSION = "reading/8"
"""Part of every feature version: changes whenever a message may be read differently."""
MAX_SEGMENTS = 48
"""So many sentences of a message are read, from both of its ends; a page of text costs no more than this."""
MAX_CODE_CHARS = 600

_CODE = re.compile(r"```[\w+-]*\n?(.*?)(?:```|$)", re.DOTALL)
_ALPHANUMERIC = re.compile(r"[^\W_]")
_SCRAP = re.compile(r"(?<=[\u0370-\u1fff\u2e80-\ud7ff\uf900-\ufdff])[ \t]+(?=[A-Z][a-z']*(?:,? [A-Za-z']+){2})")
"""Where a scrap of another script, without a full stop, would swallow the sentence behind it."""
_SEAM = re.compile(
    any_of(
        r"[,:;/()\[\]{}<>\"\u201c\u201d|*#=_]+",
        r"\s[-\u2013\u2014]+\s",
        r"(?<=[.!?\u2026])(?=[^\W_])",
        r"(?<=[a-z])(?=[A-Z][a-z'])",
        r"\s(?=[A-Z\u00c0-\u00de][a-z\u00df-\u00ff'])",
        r"\s(?=(?:[A-Z]\b|\d))",
        r"(?<=[^A-Z\s])\s(?=[A-Z]{2})",
    )
)
"""Where something else may begin within a sentence; a name or a figure is cut off by it as well, which does no harm."""
_SPACES = re.compile(r"[^\S\n]+")
MAX_REMARKS = 512
"""So many pieces of an agent's own words are read; who says more than that says the worst there is (`features`)."""
_ASKS_FOR_CODE = re.compile(
    r"```|\b(?:code|coding|program(?:s|ming)?|python|java(?:script)?|typescript|c\+\+|html|css|sql|regex|json|yaml|bash"
    r"|script|function|algorithm|latex|matlab|perl|php|rust|golang|excel formula)\b",
    re.IGNORECASE,
)
_ASKS_FOR_A_LIST = re.compile(
    r"\b(?:list|lists|names?|enumerate|keywords?|examples?|ideas|titles?|sort|order|rank|classify|categori[sz]e|label|"
    r"translate|rewrite|paraphrase|summari[sz]e|extract|identify|write|generate|create|compose|suggest|give me|convert"
    r"|table|words?|which|what are|input|output)\b",
    re.IGNORECASE,
)
_FIGURE = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Forms:
    """The forms besides prose that a conversation calls for."""

    code: bool = False
    lists: bool = False
    figures: bool = False
    foreign: bool = False
    small_talk: bool = True


@dataclass(frozen=True, slots=True)
class Message:
    """What is read of one message."""

    party: Party
    """Whose credit it is; an answer that an agent got in a scenario is the agent's."""
    segments: tuple[str, ...]
    """Sentences or pieces of code, in order; empty where nothing in it counts."""


def read(conversation: Conversation, reads: Reads = "answers") -> tuple[Message, ...]:
    """The conversation as learned judges read it, in order."""
    return _answers(conversation) if by_answers(conversation, reads) else _words(conversation)


def by_answers(conversation: Conversation, reads: Reads) -> bool:
    """Whether an agent is credited with the answers it got, if any, and with none of its own words."""
    return reads == "answers" and bool(conversation.scenario)


def is_answered(conversation: Conversation) -> bool:
    """Whether the other party says anything after the agent's first turn."""
    parties = [said.party for said in conversation.turns]
    return "agent" in parties and "persona" in parties[parties.index("agent") :]


def _answers(conversation: Conversation) -> tuple[Message, ...]:
    """What the other party came with, and all that it told an agent that it followed, as one message.

    When it told what, and in how many turns, is not read: a turn more, or another last word, would change too much.
    """
    heard: set[str] = set()
    opening: list[Message] = []
    told: list[str] = []
    spoke = False
    for said in conversation.turns:
        if said.party == "agent":
            spoke = True
            continue
        segments = _within_limits(sentences(said.text))
        if not spoke:
            opening.append(Message("persona", tuple(segments)))
        elif is_puzzled(segments):
            continue
        else:
            segments = [segment for segment in _fresh(segments, heard) if not _is_idle(segment)]
            told += segments
        heard.update(normal(segment) for segment in segments)
    return (*opening, Message("agent", tuple(told)))


def remarks(conversation: Conversation) -> tuple[str, ...]:
    """All that the agent said, each once, in pieces that do not grow together with a text put before or behind.

    Nothing is left out as it is for credit: what costs shall not be hidden by making it look like something else. More
    than MAX_REMARKS mean that there was more than is read.
    """
    found: dict[str, None] = {}
    for said in conversation.turns:
        if said.party == "agent":
            # Before long sentences are cut: else a text put before a sentence would move the cut into it.
            shown = unglued(recased(plain(undisguised(said.text))).replace("```", "\n"))
            text = _SEAM.sub("\n", _SPACES.sub(" ", shown))
            found.update(dict.fromkeys(piece for piece in split_sentences(text) if _ALPHANUMERIC.search(piece)))
            if len(found) > MAX_REMARKS:
                break
    return tuple(found)


def _is_idle(segment: str) -> bool:
    return all(is_small_talk(sentence) for sentence in sentences_of(segment))


def _words(conversation: Conversation) -> tuple[Message, ...]:
    """What both parties said; in a scenario, without turns that say nothing."""
    heard: set[str] = set()
    messages: list[Message] = []
    asked: list[str] = []
    for said in conversation.turns:
        if said.party == "persona":
            segments = tuple(_within_limits(sentences(said.text)))
            asked.append(said.text)
        else:
            forms = forms_asked_for(conversation.scenario or "\n".join(asked))
            forms = replace(forms, small_talk=not conversation.scenario)
            segments = tuple(_within_limits(_fresh(_agent_segments(said.text, forms), heard)))
            if conversation.scenario and not segments:
                continue
        heard.update(normal(segment) for segment in segments)
        messages.append(Message(said.party, segments))
    return tuple(messages)


@remembered(2048, longest=20_000)
def forms_asked_for(text: str) -> Forms:
    """The forms besides prose that a scenario or the other party's words call for."""
    shown = plain(undisguised(text))
    sentences = sentences_of(shown)
    noise = sum(sentence.kind is Kind.NOISE for sentence in sentences)
    letters = [character for character in shown if character.isalpha()]
    other_script = sum(not letter.isascii() for letter in letters) * 4 > len(letters)
    return Forms(
        code=bool(_ASKS_FOR_CODE.search(shown)),
        lists=bool(_ASKS_FOR_A_LIST.search(shown)),
        figures=bool(_FIGURE.search(shown)),
        foreign=other_script or "translat" in shown.lower() or (noise * 2 > len(sentences) and bool(letters)),
    )


def _agent_segments(text: str, forms: Forms) -> list[str]:
    """The segments of an agent's message that are addressed to the other party."""
    shown = undisguised(text)
    kept: list[str] = []
    start = 0
    for block in _CODE.finditer(shown):
        kept += _prose(shown[start : block.start()], forms)
        if forms.code and not injects(block.group(1)):
            kept += _code(block.group(1))
        start = block.end()
    return kept + _prose(shown[start:], forms)


def _prose(text: str, forms: Forms) -> list[str]:
    spoken = _SCRAP.sub("\n", ROLE_LINE.sub("", text))
    return [sentence.text for sentence in sentences_of(spoken) if _counts(sentence, forms)]


def _counts(sentence: Sentence, forms: Forms) -> bool:
    text = sentence.text
    if sentence.kind is Kind.META or not _ALPHANUMERIC.search(text) or is_for_the_judge(text):
        return False
    if sentence.kind is Kind.KEYWORDS:
        return forms.lists
    if sentence.kind is Kind.NOISE:
        return forms.foreign or (forms.figures and _is_reckoning(text)) or forms.code
    return forms.small_talk or not is_small_talk(sentence)


def _is_reckoning(text: str) -> bool:
    """Mostly figures and signs, with few letters: "12 x 4 = 48"."""
    return bool(_FIGURE.search(text)) and sum(len(word) > 2 and word.isalpha() for word in tokens(text)) <= 6


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
    """All segments of a text that nobody is rewarded for: another party's message, a scenario."""
    shown = undisguised(text)
    found: list[str] = []
    start = 0
    for block in _CODE.finditer(shown):
        found += [*split_sentences(shown[start : block.start()]), *_code(block.group(1))]
        start = block.end()
    return tuple(piece for piece in [*found, *split_sentences(shown[start:])] if _ALPHANUMERIC.search(piece))


def _code(block: str) -> list[str]:
    """A piece of code as one segment; a long one by its beginning."""
    line = " ".join(block.split())[:MAX_CODE_CHARS]
    return [line] if line else []


def _within_limits(segments: Sequence[str]) -> Sequence[str]:
    if len(segments) <= MAX_SEGMENTS:
        return segments
    return [*segments[: MAX_SEGMENTS // 2], *segments[-(MAX_SEGMENTS // 2) :]]
