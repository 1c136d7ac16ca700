"""Turns moves into words. Wordings are chosen by a hash of seed, turn and slot: no RNG, no clock.

Receives the texts of facts only through the moves that may tell them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container

from personas.case.compiled import CompiledCase, CompiledTopic
from personas.case.temperament import Phrases
from personas.play.move import Move, MoveKind, SpokenMove
from personas.text.sentences import sentences
from personas.text.wording import content_stems, normal, words_of

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

ECHO_WORDS = 6
"""A question of at most so many words, before an answer, echoes what was heard."""

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

    def __init__(  # noqa: PLR0917 (what a line depends on)
        self,
        case: CompiledCase,
        phrases: Phrases,
        seed: int,
        turn: int,
        attempt: int = 0,
        said: Container[str] = frozenset(),
    ) -> None:
        """`said` are digests of what was said before; see `answers`."""
        self._case = case
        self._phrases = phrases
        self._seed = seed
        self._attempt = attempt
        self._step = turn + attempt
        self._said = said

    def speak(self, moves: tuple[Move, ...]) -> tuple[SpokenMove, ...]:
        """The words of each move, in the order in which they are said."""
        parts: list[SpokenMove] = []
        for i, move in enumerate(moves):
            text = self._word(move)
            if move.late:
                text = self._joined(self._pick(self._phrases.comes_back, "comes_back"), text)
            elif move.kind is MoveKind.TELL and not i and not move.plain:
                text = self._led(text)
            parts.append(SpokenMove(move, text))
        return tuple(parts)

    def answers(self, moves: tuple[Move, ...]) -> tuple[str, ...]:
        """The answers to commitments among the moves, which are given once each."""
        return tuple(self._reply(move) for move in moves if move.kind in (MoveKind.REPLY, MoveKind.REPLY_EARLY))

    def _pick(self, lines: tuple[str, ...], slot: str) -> str:
        """Rotates with the turn from a start of the seed's: the same line comes back as late as possible."""
        return lines[(draw(self._seed, slot, len(lines)) + self._step) % len(lines)]

    def _word(self, move: Move) -> str:
        topic = self._case.by_id.get(move.about)
        own = None if topic is None else self._of_topic(topic, move)
        if own is not None:
            return own
        if move.kind in (MoveKind.REPLY, MoveKind.REPLY_EARLY):
            return self._reply(move)
        if move.kind is MoveKind.WORKS_OUT:
            return _capital(
                move.lines[(draw(self._seed, f"works|{move.about}", len(move.lines)) + self._step) % len(move.lines)]
            )
        if move.kind is MoveKind.BACKGROUND:
            says = self._case.asides[move.about].says
            return says[(draw(self._seed, f"says|{move.about}", len(says)) + move.nth) % len(says)]
        text = self._pick(self._lines(move), move.kind.value)
        return _capital(text.format(amount=move.figure)) if move.figure else text

    def _of_topic(self, topic: CompiledTopic, move: Move) -> str | None:
        """The case's words for a topic, where the move takes any."""
        if move.kind in (MoveKind.TELL, MoveKind.VOLUNTEER):
            return topic.says[draw(self._seed, f"says|{topic.id}", len(topic.says))]
        if move.kind is MoveKind.AGAIN:
            return self._again(topic, move)
        if move.kind is MoveKind.PARTIAL and topic.partial:
            return topic.partial
        if move.kind is MoveKind.MISQUOTED:
            return f"No. {topic.again or topic.says[draw(self._seed, f'says|{topic.id}', len(topic.says))]}"
        return topic.answer if move.kind is MoveKind.ANSWER else None

    def _again(self, topic: CompiledTopic, move: Move) -> str:
        """The fact in a wording that was not used yet; asked for in the same words, the persona says so.

        Where all are used, it says the oldest again.
        """
        if topic.again and move.nth <= 1:
            return topic.again
        size = len(topic.says)
        first = draw(self._seed, f"says|{topic.id}", size)
        wordings = [topic.says[(first + i) % size] for i in range(size)]
        others = [wording for wording in wordings[1:] if not _ACTION.match(wording)]
        rest = others[max(0, move.nth - 1 - bool(topic.again)) :]
        if move.plain:
            return rest[0] if rest else self._repeated(wordings[0])
        old = [wording for wording in wordings if not _ACTION.match(wording)]
        if not old:
            return self._pick(self._phrases.again_tired, "again_tired")
        return self._repeated((rest or old)[0])

    def _repeated(self, text: str) -> str:
        return self._joined(self._pick(self._phrases.again, "again"), text)

    def _reply(self, move: Move) -> str:
        """Each answer to a commitment once, in an order of the seed's; of those that are left, one that fits."""
        commitment = next(c for c in self._case.commitments if c.id == move.about)
        lines = commitment.reply_early if move.kind is MoveKind.REPLY_EARLY else commitment.reply
        start = draw(self._seed, f"{move.kind}|{move.about}", len(lines))
        order = [lines[(start + i) % len(lines)] for i in range(len(lines))]
        left = [line for line in order if digest_of(line) not in self._said] or order
        fitting = [line for line in left if not mishears(line, move.heard)] or left
        return fitting[self._attempt % len(fitting)]

    def _continues(self, text: str) -> bool:
        """True if a sentence can go on after a comma without changing a name."""
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
        if move.kind is MoveKind.TOOL_REPLY:
            return case.tool_replies[move.about]
        own: dict[MoveKind, tuple[str, ...]] = {
            MoveKind.UNKNOWN: case.unknown,
            MoveKind.NUDGE: case.nudges,
            MoveKind.TIRED: phrases.again_tired,
            MoveKind.FAREWELL: case.farewell or self._manner(MoveKind.GOODBYE),
        }
        return own[move.kind] if move.kind in own else self._manner(move.kind)

    def _manner(self, kind: MoveKind) -> tuple[str, ...]:
        """The case's own phrases, or the temperament's."""
        own = self._case.phrases.get(kind.value)
        if kind is MoveKind.PARTING and not (own or self._phrases.parting):
            return self._manner(MoveKind.LEAVING)
        return own or self._phrases.of(kind.value)


def mishears(line: str, heard: str) -> bool:
    """True if an answer begins by asking back words that were not said ("To the station?")."""
    echo = sentences(line)[0]
    words = content_stems(echo)
    asks_back = echo.endswith("?") and len(echo.split()) <= ECHO_WORDS
    return asks_back and 2 * len(words & content_stems(heard)) < len(words)


def _first_word(text: str) -> str:
    return text.split(" ", 1)[0].rstrip(",.;:!?").lower().replace("\u2019", "'")


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"
