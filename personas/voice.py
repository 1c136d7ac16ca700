"""Turns moves into words. Wordings are chosen by a hash of seed, turn and slot: no RNG, no clock.

Receives the texts of facts only through the moves that may tell them.
"""

from __future__ import annotations

import hashlib
import re

from personas.compiled import CompiledCase
from personas.moves import Act, Move
from personas.temperament import Phrases
from personas.wording import normal, words_of

_PLAIN_STARTS = words_of(
    """a about after all an and any anything as at because before both but by each even every everyone everything for
    from he her his if in it it's its just last maybe more most mostly my no nobody none not nothing now of on once one
    only or our perhaps she since so some someone something sometimes still that that's the their there there's they
    they're this to two three until usually we we're what when whenever with yes you your"""
)

_ACTION = re.compile(
    r"(?:hold on|hang on|wait|one (?:moment|second|sec|minute)|just a (?:moment|second|sec|minute)|give me a|let me|"
    r"let's see|bear with me|hm+|oh|huh|ah|(?:okay|ok|right),? (?:let me|i'm|hold on|one )|i'm (?:just )?"
    r"(?:turning|looking (?:at|up)|checking|opening|going|having a look|trying))\b",
    re.IGNORECASE,
)
"""A wording that begins like this tells what is being done or noticed now: it cannot be told a second time."""

_FIRST_PERSON = frozenset({"i", "i'm", "i've", "i'd", "i'll"})


def draw(seed: int, slot: str, size: int) -> int:
    """A number below `size` that depends on seed and slot alone, the same in every process."""
    digest = hashlib.blake2b(f"{seed}|{slot}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % size


def digest_of(line: str) -> str:
    """A short mark by which an earlier line is recognised."""
    return hashlib.blake2b(normal(line).encode(), digest_size=6).hexdigest()


class Voice:
    """Speaks for one persona of one seed in one turn."""

    def __init__(self, case: CompiledCase, phrases: Phrases, seed: int, turn: int, attempt: int = 0) -> None:
        self._case = case
        self._phrases = phrases
        self._seed = seed
        self._step = turn + attempt

    def speak(self, moves: tuple[Move, ...]) -> str:
        """The reply in one line."""
        led = False
        parts: list[str] = []
        for i, move in enumerate(moves):
            text = self._word(move)
            if move.act is Act.TELL and not led and not parts:
                led, text = True, self._led(text)
            if i and move.act is Act.UNKNOWN and self._continues(text):
                text = self._joined("As for the other thing,", text)
            parts.append(text)
        return " ".join(parts)

    def _pick(self, lines: tuple[str, ...], slot: str) -> str:
        """Rotates with the turn from a start of the seed's: the same line comes back as late as possible."""
        return lines[(draw(self._seed, slot, len(lines)) + self._step) % len(lines)]

    def _word(self, move: Move) -> str:
        topic = self._case.by_id.get(move.about)
        if topic is not None:
            if move.act in (Act.TELL, Act.VOLUNTEER):
                return topic.says[draw(self._seed, f"says|{topic.id}", len(topic.says))]
            if move.act is Act.AGAIN:
                return self._again(topic.id)
            if move.act is Act.PARTIAL and topic.partial:
                return topic.partial
            if move.act is Act.ANSWER and topic.answer:
                return topic.answer
        if move.act in (Act.REPLY, Act.REPLY_EARLY):
            return self._reply(move)
        return self._pick(self._lines(move), move.act.value)

    def _again(self, topic_id: str) -> str:
        """The fact in another wording than the first time."""
        topic = self._case.by_id[topic_id]
        if topic.again:
            return topic.again
        first = draw(self._seed, f"says|{topic.id}", len(topic.says))
        others = [topic.says[(first + i) % len(topic.says)] for i in range(1, len(topic.says) + 1)]
        other = next((wording for wording in others if not _ACTION.match(wording)), None)
        if other is None:
            return self._pick(self._phrases.again_tired, "again_tired")
        return self._joined(self._pick(self._phrases.again, "again"), other)

    def _reply(self, move: Move) -> str:
        """Each answer to a commitment once, in an order of the seed's."""
        commitment = next(c for c in self._case.commitments if c.id == move.about)
        lines = commitment.reply_early if move.act is Act.REPLY_EARLY else commitment.reply
        return lines[(draw(self._seed, f"{move.act}|{move.about}", len(lines)) + move.nth) % len(lines)]

    def _continues(self, text: str) -> bool:
        """Whether a sentence can go on after a comma without changing a name."""
        word = _first_word(text)
        return word in _PLAIN_STARTS or word in _FIRST_PERSON or word in self._case.common_words

    def _joined(self, lead: str, text: str) -> str:
        """Puts small words before a sentence; after a comma it starts in lower case, which names do not allow."""
        if lead[-1] not in ",:" or _first_word(text) in _FIRST_PERSON:
            return f"{lead} {text}"
        if self._continues(text):
            return f"{lead} {text[0].lower()}{text[1:]}"
        return f"{lead[:-1]}: {text}" if " " in lead else text

    def _led(self, text: str) -> str:
        """Now and then a small word before a fact; more often would be a tic."""
        lead_ins = self._phrases.lead_in
        if not lead_ins or draw(self._seed, f"lead|{self._step}", 3):
            return text
        return self._joined(self._pick(lead_ins, "lead_in"), text)

    def _lines(self, move: Move) -> tuple[str, ...]:
        case, phrases = self._case, self._phrases
        if move.act is Act.TOOL_REPLY:
            return case.tool_replies[move.about]
        return {
            Act.NOT_UNDERSTOOD: phrases.not_understood,
            Act.HURT: phrases.hurt,
            Act.TOO_MANY: phrases.too_many,
            Act.TIRED: phrases.again_tired,
            Act.WITHHELD: phrases.withheld,
            Act.UNKNOWN: case.unknown,
            Act.FOLLOWING: phrases.following or phrases.warmed,
            Act.WARMED: phrases.warmed,
            Act.NUDGE: case.nudges,
            Act.WAIT: phrases.wait,
            Act.FAREWELL: case.farewell or phrases.goodbye,
            Act.LEAVING: phrases.leaving,
            Act.PARTING: phrases.parting or phrases.leaving,
        }[move.act]


def _first_word(text: str) -> str:
    return text.split(" ", 1)[0].rstrip(",.;:!?").lower().replace("\u2019", "'")
