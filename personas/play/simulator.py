"""The deterministic persona: hears, decides, speaks. Same case, seed and messages give the same bytes.

Holds no state of its own: the state goes in and comes out, so an episode can be stored between turns and
played on by any process.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from personas.case.compiled import CompiledCase
from personas.case.temperament import Temperament
from personas.hearing.advance import advance, counted
from personas.hearing.background import BackgroundTurn, aside_of, may_recall
from personas.hearing.hear import hear
from personas.hearing.state import PersonaState
from personas.hearing.types import AgentTurn, Hearing
from personas.play.decide import decide
from personas.play.guard import check_reply
from personas.play.move import Move, MoveKind, SpokenMove, disclosed, ends, held_back, worded
from personas.play.voice import Voice, digest_of, draw
from personas.reading.reader import Reader

_ATTEMPTS = 6


@dataclass(frozen=True, slots=True)
class Opening:
    """The persona's first line and the state after it."""

    text: str
    state: PersonaState


@dataclass(frozen=True, slots=True)
class Reply:
    """The persona's answer to one agent turn."""

    text: str
    state: PersonaState
    disclosed: tuple[str, ...]
    ended: Literal["completed"] | None
    hearing: Hearing
    """How it understood the turn."""
    parts: tuple[SpokenMove, ...] = ()
    """What the line is made of."""


class Simulator:
    """Plays one case with one temperament."""

    def __init__(self, case: CompiledCase, temperament: Temperament, reader: Reader) -> None:
        self._case = case
        self._temperament = temperament
        self._reader = reader

    def open(self, seed: int) -> Opening:
        """The persona speaks first."""
        text = self._case.openings[draw(seed, "opening", len(self._case.openings))]
        volunteered = self._case.volunteered_in(text)
        state = PersonaState(
            said=dict.fromkeys(volunteered, 0), worded=dict.fromkeys(volunteered, 1), lines=(digest_of(text),)
        )
        check_reply(self._case, state, text)
        return Opening(text, state)

    def reply(self, state: PersonaState, turn: AgentTurn, seed: int, line: str) -> Reply:
        """The persona's answer; blocking, because the reader may run a model. `LeakError` is a defect.

        `line` is what the persona said last, in the words in which it was said: short turns are read after it.
        """
        case = self._case
        [reading] = self._reader.read(case, [(line, turn.text)])
        hearing = hear(case, state, turn, reading, self._temperament.reserve)
        advanced = advance(case, state, turn, hearing, ())
        aside = self._aside(state, hearing, line)
        moves = decide(case, self._temperament, state, turn, hearing, after=advanced, aside=aside)
        disclosed_topics = disclosed(moves)
        after = advance(case, state, turn, hearing, disclosed_topics)
        parts, answers = self._speak(moves, seed, after)
        text = _line(parts)
        check_reply(case, after, text)
        ended = ends(moves)
        after = replace(
            after,
            worded=counted(after.worded, worded(moves)),
            held_back=counted(after.held_back, held_back(moves)),
            ended=ended,
            conversation=replace(
                after.conversation,
                told=worded(moves),
                asked_back=after.conversation.asked_back + any(move.kind is MoveKind.ASKS_BACK for move in moves),
            ),
            lines=(*after.lines, *map(digest_of, answers), digest_of(text)),
        )
        return Reply(text, after, disclosed_topics, "completed" if ended else None, hearing, parts)

    def _aside(self, state: PersonaState, hearing: Hearing, line: str) -> BackgroundTurn:
        """The background that the turn brings to mind."""
        sentences = may_recall(hearing) if self._case.background else []
        if not sentences:
            return BackgroundTurn()
        beside = self._reader.beside(self._case, line, sentences)
        return aside_of(self._case, state, hearing, sentences, beside)

    def _speak(
        self, moves: tuple[Move, ...], seed: int, after: PersonaState
    ) -> tuple[tuple[SpokenMove, ...], tuple[str, ...]]:
        """The words of the moves, in a wording not used before, or else the one used longest ago.

        And the answers to commitments in it, each of which is given once.
        """
        phrases = self._temperament.phrases
        last_use = {mark: i for i, mark in enumerate(after.lines)}
        oldest: tuple[int, tuple[SpokenMove, ...], tuple[str, ...]] | None = None
        for attempt in range(_ATTEMPTS):
            voice = Voice(self._case, phrases, seed, after.turn, attempt, last_use.keys())
            parts, answers = voice.speak(moves), voice.answers(moves)
            used = last_use.get(digest_of(_line(parts)), -1)
            if used < 0:
                return parts, answers
            if oldest is None or used < oldest[0]:
                oldest = (used, parts, answers)
        return oldest[1:] if oldest else ((), ())


def adopt(reply: Reply, text: str) -> Reply:
    """The reply in other words. The engine's line counts as used, too, so that it is not the next one."""
    return replace(reply, text=text, state=replace(reply.state, lines=(*reply.state.lines, digest_of(text))))


def _line(parts: tuple[SpokenMove, ...]) -> str:
    return " ".join(part.text for part in parts)
