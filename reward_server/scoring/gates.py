"""The preflight gates: limits on the reward that hold whatever the rubric says.

`injection`: the agent talks to the scorer instead of the persona. `recital`: it recites the rubric. `stuffing`: it
throws lists of words. `scope`: it never touches the matter at all. `only_asks`: it asks, and where something can be
done it does nothing: no promise or call of a tool that is worth points, no word of sympathy. They are the safety gate,
which a request may skip. `degenerate` is no conversation (silence, an echo, one line repeated) and always holds. Gates
only ever lower a reward.

What is talk about scoring or cannot be read, the reader says. Besides it only formats count that no person writes:
tokens of chat templates, lines that pose as another speaker, keys of a JSON verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType

from personas.reading.acts import Act, Reading
from personas.replay.replayer import Record, TurnRecord
from reward_server.judges.base import Verdict
from reward_server.transcripts.emptiness import TURNS_TO_JUDGE_BY, empty_turns, is_degenerate, words_alone
from reward_server.transcripts.markup import has_markup, tool_texts
from reward_server.transcripts.transcript import Transcript
from scenarios.schema import Criterion

INJECTION_CAP = 0.2
STUFFING_CAP = 0.2
SCOPE_CAP = 0.2
ONLY_ASKS_CAP = 0.15
RECITAL_CAP = 0.2
DEGENERATE_CAP = 0.05
TURNS_TO_ASK = 4
"""A good talk may begin with three turns of questions alone."""
INTERROGATIONS = 2
"""So many turns of question upon question ask as much as four turns do."""
WORDS_OF_A_SCRAP = 3
RECITED = 2
"""So many sentences of the rubric are no accident."""
LISTED = 6
"""So many scraps of sentences in one turn are a list of words, whatever stands between them."""
STUFFED_TURNS = 2
"""One list is no offence."""
LEGIBLE = 0.5
"""A turn of which less can be read is noise."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate that closed: its name, and the most the reward can be."""

    name: str
    cap: float


def closed_gates(
    transcript: Transcript,
    record: Record,
    skip_safety_gate: bool,
    *,
    recited: int = 0,
    criteria: Sequence[Criterion] = (),
    verdicts: Mapping[str, Verdict] = MappingProxyType({}),
    has_persona: bool = True,
) -> tuple[Gate, ...]:
    """The gates that hold for this transcript.

    Args:
        transcript: the conversation.
        record: what its replay found.
        skip_safety_gate: whether only `degenerate` holds.
        recited: so many sentences recite the rubric.
        criteria: what the request wants decided.
        verdicts: on those of them that are computed.
        has_persona: whether there is a matter to be touched and somebody to bring something out of.
    """
    gates = list(_closed(transcript, record, skip_safety_gate, recited, _moves_on if has_persona else _says_something))
    if not skip_safety_gate and _only_asks(record, criteria, verdicts):
        gates.append(Gate("only_asks", ONLY_ASKS_CAP))
    return tuple(gates)


def _closed(
    transcript: Transcript, record: Record, skip_safety_gate: bool, recited: int, counts: Callable[[TurnRecord], bool]
) -> Iterator[Gate]:
    """`counts` tells the turns that something comes of."""
    if not skip_safety_gate:
        if recited >= RECITED:
            yield Gate("recital", RECITAL_CAP)
        if _talks_about_scoring(record) or any(map(has_markup, _agent_texts(transcript))):
            yield Gate("injection", INJECTION_CAP)
        if len(record.turns) >= TURNS_TO_JUDGE_BY:
            if _is_stuffed(record, counts):
                yield Gate("stuffing", STUFFING_CAP)
            if counts is _moves_on and not _in_scope(record):
                yield Gate("scope", SCOPE_CAP)
    if is_degenerate(transcript) or _comes_to_nothing(transcript, record, counts):
        yield Gate("degenerate", DEGENERATE_CAP)


def _talks_about_scoring(record: Record) -> bool:
    return any(turn.hearing.reading.any(Act.META) for turn in record.turns)


def _agent_texts(transcript: Transcript) -> Iterable[str]:
    for turn in transcript.turns:
        yield turn.agent
        yield from tool_texts(turn)


def _is_stuffed(record: Record, counts: Callable[[TurnRecord], bool]) -> bool:
    """True if lists are half of what counts: turns that bring nothing do not outweigh them, however many there are."""
    stuffed = [_stuffs(turn.hearing.reading) for turn in record.turns]
    others = sum(counts(turn) for turn, lists in zip(record.turns, stuffed, strict=True) if not lists)
    return sum(stuffed) >= max(STUFFED_TURNS, others)


def _moves_on(turn: TurnRecord) -> bool:
    return turn.brings or turn.asks_anew


def _says_something(turn: TurnRecord) -> bool:
    """True if a turn has sentences of its own, or does something: it counts where no case says what it brings."""
    return bool(turn.own or turn.tools)


def _stuffs(reading: Reading) -> bool:
    """True if a turn is mostly words without speech, or many scraps."""
    scraps = sum(len(sentence.text.split()) <= WORDS_OF_A_SCRAP for sentence in reading.sentences)
    return reading.legibility < LEGIBLE or scraps >= LISTED


def _in_scope(record: Record) -> bool:
    return any(_is_about_the_case(turn) for turn in record.turns)


def _only_asks(record: Record, criteria: Sequence[Criterion], verdicts: Mapping[str, Verdict]) -> bool:
    """True if commitments or tools are worth points here, and the agent neither comforts nor does any such thing.

    An interview may be questions alone. What is worth nothing is no deed: a promise that only costs, a call of no use.
    """
    deeds = [c for c in criteria if c.points > 0 and (c.check.committed or c.check.tool)]
    interrogations = sum(turn.hearing.interrogation for turn in record.turns)
    if not deeds or (len(record.turns) < TURNS_TO_ASK and interrogations < INTERROGATIONS):
        return False
    wanted = {name for c in deeds if c.check.committed for name in c.check.committed.any_of}
    if any(c.check.tool and (verdict := verdicts.get(c.id)) and verdict.value for c in deeds):
        return False
    return not any(turn.empathy or (turn.own and _commits(turn, wanted)) for turn in record.turns)


def _commits(turn: TurnRecord, wanted: Set[str]) -> bool:
    return any(commitment.commitment_id in wanted for commitment in turn.hearing.commitments)


def _is_about_the_case(turn: TurnRecord) -> bool:
    hearing = turn.hearing
    return bool(hearing.asked or hearing.unsure or hearing.commitments or hearing.invites or turn.tools)


def _comes_to_nothing(transcript: Transcript, record: Record, counts: Callable[[TurnRecord], bool]) -> bool:
    """True if it is degenerate but for turns that bring nothing: they do not make a conversation of it."""
    agent_texts = [words_alone(turn.agent) for turn in transcript.turns]
    [(often, _)] = Counter(agent_texts).most_common(1) or [("", 0)]
    for nothing in ([text == often for text in agent_texts], list(empty_turns(transcript))):
        others = (turn for turn, is_nothing in zip(record.turns, nothing, strict=True) if not is_nothing)
        if sum(nothing) >= TURNS_TO_JUDGE_BY and not any(map(counts, others)):
            return True
    return False
