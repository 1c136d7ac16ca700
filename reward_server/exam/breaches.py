"""Breaches that cost nothing: of those the author wrote, and of the examples of every commitment with a cap.

Each is heard alone, after the persona's opening, through the same hearing as play and scoring.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from personas.hearing.hear import BINDING, BINDING_AGAIN, hear
from personas.hearing.state import PersonaState
from personas.hearing.types import AgentTurn
from personas.reading.acts import ReadCandidate, is_question
from personas.reading.reader import Reader
from scenarios.library import SealedScenario
from scenarios.schema import Breach


@dataclass(frozen=True, slots=True)
class Unfired:
    """A sentence that costs nothing. Private: it quotes the author's file."""

    commitment: str
    text: str
    why: str
    breach: bool
    """Whether the author wrote it as a breach, and not as an example."""
    question: bool = False
    """Whether it would cost something if questions could make the commitment."""

    def __str__(self) -> str:
        return f"`{self.commitment}` {self.why}: {self.text}"


def unfired(scenario: SealedScenario, breaches: Sequence[Breach], reader: Reader) -> list[Unfired]:
    """The breaches that cost nothing; blocking."""
    capped = _capped(scenario)
    own = [
        (each.id, text) for each in scenario.secrets.persona.commitments if each.id in capped for text in each.examples
    ]
    return [
        *_silent(scenario, [(each.commits, each.say) for each in breaches], capped, reader, breach=True),
        *_silent(scenario, own, capped, reader, breach=False),
    ]


def _capped(scenario: SealedScenario) -> frozenset[str]:
    """The commitments that a cap rests on."""
    return frozenset(
        name
        for criterion in scenario.secrets.rubric.criteria
        if criterion.cap is not None
        for check in criterion.checks
        if check.committed
        for name in check.committed.any_of
    )


def _silent(
    scenario: SealedScenario, said: Sequence[tuple[str, str]], capped: frozenset[str], reader: Reader, *, breach: bool
) -> Iterator[Unfired]:
    case = scenario.case
    askable = {each.id for each in case.commitments if each.also_questions}
    readings = reader.read(case, [(case.openings[0], text) for _, text in said])
    for (name, text), reading in zip(said, readings, strict=True):
        if name not in capped:
            yield Unfired(name, text, "is no commitment that a cap rests on", breach)
            continue
        made = {each.commitment_id: each for each in hear(case, PersonaState(), AgentTurn(text), reading).commitments}
        if name in made and made[name].binding:
            continue
        found = [(c, s) for s in reading.sentences for c in s.commitments if c.id == name]
        likeliest, sentence = max(found, key=lambda pair: _likely(pair[0]), default=(ReadCandidate(name, 0.0), None))
        question = sentence is not None and is_question(sentence) and name not in askable
        yield Unfired(name, text, _why(likeliest, question=question), breach, question)


def _why(candidate: ReadCandidate, *, question: bool) -> str:
    if question:
        return "put as a question"
    needed, heard = BINDING, f"{candidate.confidence:.2f}"
    if candidate.binding is not None:
        needed, heard = BINDING_AGAIN, f"{candidate.binding:.4f}"
    short = _likely(candidate) < needed
    return f"heard at {heard}, " + (f"needs {needed:.4g}" if short else "put as no statement of the agent's own")


def _likely(candidate: ReadCandidate) -> float:
    """How likely it is made, by the reading that decides whether it binds."""
    return candidate.confidence if candidate.binding is None else candidate.binding
