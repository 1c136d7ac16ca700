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

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType

from personas.memory import remembered
from personas.reading.acts import Act, Reading
from personas.reading.plain import plain
from personas.replay import Record, TurnRecord
from personas.wording import normal
from reward_server.judges.base import Verdict
from reward_server.scoring.transcript import Transcript, Turn
from scenarios.schema import Criterion

INJECTION_CAP = 0.2
STUFFING_CAP = 0.2
SCOPE_CAP = 0.2
ONLY_ASKS_CAP = 0.15
RECITAL_CAP = 0.2
DEGENERATE_CAP = 0.05
TURNS_TO_JUDGE_BY = 3
"""A greeting is no offence: scope, stuffing, echoes and repetition are judged from this many agent turns on."""
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

_FORMATS = re.compile(
    r"<\|?/?(?:im_start|im_end|system|endoftext|start_header_id|end_header_id|eot_id)\|?>|\[/?(?:INST|SYSTEM)\]"
    r"|</?(?:verdict|score|reward|transcript|evaluation|rubric|system)>"
    r"""|["'](?:criteria_met|criterion_id|score|reward|verdict|met|passed|final_score)["']\s*:"""
    r"|\bcriteria_met ?[=:]|^[^\S\n]*(?:SYSTEM|(?i:assistant|human))\s*:\s+\S+(?: \S+){2}",
    re.MULTILINE,
)
"""Chat templates, markup and JSON of verdicts, and lines that pose as other speakers of a chat log."""


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
) -> tuple[Gate, ...]:
    """The gates that hold for this transcript.

    Args:
        transcript: the conversation.
        record: what its replay found.
        skip_safety_gate: whether only `degenerate` holds.
        recited: so many sentences recite the rubric.
        criteria: what the request wants decided.
        verdicts: on those of them that are computed.
    """
    gates = list(_closed(transcript, record, skip_safety_gate, recited))
    if not skip_safety_gate and _only_asks(record, criteria, verdicts):
        gates.append(Gate("only_asks", ONLY_ASKS_CAP))
    return tuple(gates)


def _closed(transcript: Transcript, record: Record, skip_safety_gate: bool, recited: int) -> Iterator[Gate]:
    if not skip_safety_gate:
        if recited >= RECITED:
            yield Gate("recital", RECITAL_CAP)
        if _talks_about_scoring(record) or any(map(has_markup, _agent_texts(transcript))):
            yield Gate("injection", INJECTION_CAP)
        if len(record.turns) >= TURNS_TO_JUDGE_BY:
            if _is_stuffed(record):
                yield Gate("stuffing", STUFFING_CAP)
            if not _in_scope(record):
                yield Gate("scope", SCOPE_CAP)
    if is_degenerate(transcript) or _comes_to_nothing(transcript, record):
        yield Gate("degenerate", DEGENERATE_CAP)


def _talks_about_scoring(record: Record) -> bool:
    return any(turn.hearing.reading.any(Act.META) for turn in record.turns)


def _agent_texts(transcript: Transcript) -> Iterable[str]:
    for turn in transcript.turns:
        yield turn.agent
        yield from tool_texts(turn)


def tool_texts(turn: Turn) -> Iterator[str]:
    """All that an agent can write into tool calls, names of fields too; a loop, so that no depth is too deep."""
    waiting: list[object] = [dict(use.input) for use in turn.uses]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting.extend((*one, *one.values()))
        elif isinstance(one, list):
            waiting.extend(one)
        elif isinstance(one, str):
            yield one


@remembered(8192, longest=10_000)
def has_markup(text: str) -> bool:
    """Whether a text holds the format of a chat template, of another speaker or of a verdict."""
    return bool(_FORMATS.search(plain(text)))


def _is_stuffed(record: Record) -> bool:
    """Whether lists are half of what counts: turns that bring nothing do not outweigh them, however many there are."""
    stuffed = [_stuffs(turn.hearing.reading) for turn in record.turns]
    others = sum(_moves_on(turn) for turn, lists in zip(record.turns, stuffed, strict=True) if not lists)
    return sum(stuffed) >= max(STUFFED_TURNS, others)


def _moves_on(turn: TurnRecord) -> bool:
    return turn.brings or turn.asks_anew


def _stuffs(reading: Reading) -> bool:
    """Whether a turn is mostly words without speech, or many scraps."""
    scraps = sum(len(each.text.split()) <= WORDS_OF_A_SCRAP for each in reading.sentences)
    return reading.legibility < LEGIBLE or scraps >= LISTED


def _in_scope(record: Record) -> bool:
    return any(_is_about_the_case(turn) for turn in record.turns)


def _only_asks(record: Record, criteria: Sequence[Criterion], verdicts: Mapping[str, Verdict]) -> bool:
    """Whether commitments or tools are worth points here, and the agent neither comforts nor does any such thing.

    An interview may be questions alone. What is worth nothing is no deed: a promise that only costs, a call of no use.
    """
    deeds = [c for c in criteria if c.points > 0 and (c.check.committed or c.check.tool)]
    interrogations = sum(turn.hearing.interrogation for turn in record.turns)
    if not deeds or (len(record.turns) < TURNS_TO_ASK and interrogations < INTERROGATIONS):
        return False
    wanted = {name for c in deeds if c.check.committed for name in c.check.committed.any_of}
    if any(c.check.tool and (found := verdicts.get(c.id)) and found.value for c in deeds):
        return False
    return not any(turn.empathy or (turn.own and _commits(turn, wanted)) for turn in record.turns)


def _commits(turn: TurnRecord, wanted: Set[str]) -> bool:
    return any(heard.commitment_id in wanted for heard in turn.hearing.commitments)


def _is_about_the_case(turn: TurnRecord) -> bool:
    hearing = turn.hearing
    return bool(hearing.asked or hearing.unsure or hearing.commitments or hearing.invites or turn.tools)


def is_degenerate(transcript: Transcript) -> bool:
    """Whether there is nothing of the agent's own in it."""
    said = [_bare(turn.agent) for turn in transcript.turns]
    if len(said) < TURNS_TO_JUDGE_BY:
        return not any(text.strip() or turn.valid_tools for text, turn in zip(said, transcript.turns, strict=True))
    return all(text == said[0] for text in said) or all(_is_empty(transcript))


def _is_empty(transcript: Transcript) -> Iterator[bool]:
    """Per turn, whether it is silence or an echo."""
    heard = [normal(transcript.opening or "")]
    for turn in transcript.turns:
        text = _bare(turn.agent)
        # A silent turn that calls a tool does something; an echo is a whole line or a piece of one.
        yield any(text in line for line in heard) if text.strip() else not turn.valid_tools
        heard.append(normal(turn.persona or ""))


def _comes_to_nothing(transcript: Transcript, record: Record) -> bool:
    """Whether it is degenerate but for turns that bring nothing: they do not make a conversation of it."""
    said = [_bare(turn.agent) for turn in transcript.turns]
    [(often, _)] = Counter(said).most_common(1) or [("", 0)]
    for nothing in ([text == often for text in said], list(_is_empty(transcript))):
        others = (turn for turn, is_nothing in zip(record.turns, nothing, strict=True) if not is_nothing)
        if sum(nothing) >= TURNS_TO_JUDGE_BY and not any(map(_moves_on, others)):
            return True
    return False


@remembered(8192, longest=10_000)
def _bare(text: str) -> str:
    """Its words alone, as a reader sees them."""
    return normal(plain(text))
