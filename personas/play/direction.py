"""The stage direction of a persona's next line: what somebody who words it has to say, may say, and may know.

The engine decides what is told and has a line for it; the direction takes that line apart. It holds the words of the
facts that are told now or were told before, and nothing of any other fact: what is kept back is not in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from personas.case.compiled import CompiledCase
from personas.case.temperament import Temperament
from personas.hearing.conversation import ConversationState, Party
from personas.play.move import FIGURES, MoveKind, SpokenMove
from personas.play.simulator import Reply
from personas.reading.acts import Act
from personas.text.sentences import sentences
from personas.text.wording import normal, tokens

__all__ = ["Character", "SaidLine", "StageDirection", "character_of", "direction_of"]

REQUIRED = FIGURES | {MoveKind.TELL, MoveKind.VOLUNTEER}
"""What earns or binds: the facts that are told now, and figures."""
SUGGESTED = frozenset(
    {
        MoveKind.BACKGROUND,
        MoveKind.AGAIN,
        MoveKind.MISQUOTED,
        MoveKind.WORKS_OUT,
        MoveKind.PARTIAL,
        MoveKind.ANSWER,
        MoveKind.REPLY,
        MoveKind.REPLY_EARLY,
        MoveKind.TOOL_REPLY,
    }
)
"""Words that are right if the engine heard the turn right, and earn nothing: said where they answer it."""


@dataclass(frozen=True, slots=True, repr=False)
class Character:
    """The persona as far as it is the same in every turn: a prompt can begin with it."""

    role: str
    manner: str
    name: str | None
    """None where the name is something to find out."""
    scene: str
    """The name of the scenario; how the agent was briefed is the agent's own."""
    life: tuple[str, ...]
    """What the persona may say of itself at any time, in the case's own words."""


@dataclass(frozen=True, slots=True, repr=False)
class SaidLine:
    """Something that was said in the conversation."""

    by_persona: bool
    text: str


@dataclass(frozen=True, slots=True, repr=False)
class StageDirection:
    """All that somebody who words a line is told about it."""

    tell: tuple[str, ...]
    """Has to be said: facts and figures, in the case's own words."""
    may: tuple[str, ...]
    """May be said if it answers the turn: background, results, answers to offers, and what was told before."""
    does: tuple[MoveKind, ...]
    """What the persona does in this line, in the engine's order."""
    told: tuple[str, ...]
    """The facts that were told before, in the case's own words."""
    own_figure: float | None
    """The figure that the persona named last."""
    their_figure: float | None
    agreed: float | None
    said: tuple[SaidLine, ...]
    """The conversation, the agent's present turn included."""
    line: str
    """The engine's own line: what is said if no other wording is accepted."""


def character_of(case: CompiledCase, temperament: Temperament, scene: str) -> Character:
    """The fixed part of every direction of a case."""
    manner = f"{temperament.name}: {temperament.description}"
    life = tuple(entry.says[0] for entry in case.own_background if not (entry.gate.requires or entry.repeats))
    return Character(case.role, manner, None if _is_secret(case) else case.name, scene, life)


def direction_of(
    case: CompiledCase, before: Sequence[str], reply: Reply, heard: Sequence[str], earlier: Sequence[str]
) -> StageDirection | None:
    """The direction for a reply; None where the agent's words are not fit to be shown to a model.

    Args:
        case: what the persona knows.
        before: the topics that were told before this turn.
        reply: what the engine answers.
        heard: what the agent said, turn by turn, the present turn last.
        earlier: what the persona said, the opening first; as many lines as the agent's.
    """
    if reply.hearing.reading.any(Act.META, Act.UNREADABLE) or (reply.hearing.unclear and not reply.hearing.rude):
        return None
    required = [part for part in reply.parts if part.move.kind in REQUIRED]
    talks = reply.state.conversation
    return StageDirection(
        tell=tuple(_words(case, part) for part in required),
        may=tuple(part.text for part in reply.parts if part.move.kind in SUGGESTED),
        does=tuple(part.move.kind for part in reply.parts),
        told=tuple(case.by_id[topic].says[0] for topic in before if topic in case.by_id),
        own_figure=_figure(talks, Party.PERSONA),
        their_figure=_figure(talks, Party.AGENT),
        agreed=talks.agreed,
        said=_in_turn(earlier, heard),
        line=reply.text,
    )


def _words(case: CompiledCase, part: SpokenMove) -> str:
    """The words of a move without the small words that lead in to them."""
    topic = case.by_id.get(part.move.about)
    if topic is None or part.move.kind not in (MoveKind.TELL, MoveKind.VOLUNTEER):
        return part.text
    line = normal(part.text)
    return next((wording for wording in topic.says if normal(wording) in line), part.text)


def _figure(talks: ConversationState, party: Party) -> float | None:
    offer = talks.last(party)
    return None if offer is None else offer.amount


def _in_turn(earlier: Sequence[str], heard: Sequence[str]) -> tuple[SaidLine, ...]:
    pairs = zip(earlier, heard, strict=True)
    return tuple(line for own, other in pairs for line in (SaidLine(True, own), SaidLine(False, other)))


def _is_secret(case: CompiledCase) -> bool:
    """True if the persona's name is in what has to be asked for."""
    name = set(tokens(case.name))
    return any(name & set(tokens(sentence)) for line in case.wordings for sentence in sentences(line))
