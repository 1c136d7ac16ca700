"""The state judge: decides from the replayed record alone, exactly and without reading any style.

What was elicited, by which question, in which turn; what the agent committed to and what it knew by
then; which tools it called; how it behaved. No wording of the agent can talk this judge into anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from personas.case.schema import Needs, all_hold
from personas.hearing.hear import is_new
from personas.hearing.types import gist_of
from personas.replay.replayer import Disclosure, MadeCommitment, TurnRecord
from personas.text.plain import plain
from personas.text.wording import normal
from reward_server.judges.base import NOT_MET, Case, Evidence, Finding, Verdict, cite, verdict
from reward_server.transcripts.transcript import ToolUse, leaves
from scenarios.schema import CommittedCheck, ConductCheck, Criterion, ElicitedCheck, PaceCheck, ToolCheck

MAX_EVIDENCE = 6


class StateJudge:
    """Decides the checks that are facts about the conversation."""

    name = "state"
    version = "7"
    kinds = frozenset({"elicited", "committed", "tool", "conduct", "pace"})

    def decide(self, case: Case, criterion: Criterion) -> Verdict:
        """The verdict on one criterion."""
        check = criterion.check
        finding = NOT_MET
        if check.elicited:
            finding = _elicited(case, check.elicited)
        elif check.committed:
            finding = _committed(case, criterion, check.committed)
        elif check.tool:
            finding = _tool(case, check.tool)
        elif check.conduct:
            finding = _conduct(case, check.conduct, earns=criterion.points > 0)
        elif check.pace:
            finding = _pace(case, check.pace)
        return verdict(self, criterion, finding)


# --- what was found out ---------------------------------------------------------------------------


def _elicited(case: Case, check: ElicitedCheck) -> Finding:
    in_time = _in_time(case, check.facts, check.by_turn)
    share = len(in_time) / len(set(check.facts))
    value = {"all": float(share == 1.0), "any": float(bool(in_time)), "share": share}[check.need]
    return Finding(value, _cite_disclosures(case, in_time))


def _pace(case: Case, check: PaceCheck) -> Finding:
    in_time = _in_time(case, check.facts, check.max_turns)
    return Finding(len(in_time) / len(set(check.facts)), _cite_disclosures(case, in_time))


def _in_time(case: Case, facts: Sequence[str], by_turn: int | None) -> list[Disclosure]:
    """The facts that were elicited by the turn, in the order of the conversation."""
    elicited = case.record.elicited
    turns = [elicited[fact] for fact in dict.fromkeys(facts) if fact in elicited]
    return sorted((d for d in turns if by_turn is None or d.turn <= by_turn), key=lambda d: d.turn)


def _cite_disclosures(case: Case, disclosures: Sequence[Disclosure]) -> tuple[Evidence, ...]:
    """Both halves of each: the question that earned it and the line that told it."""
    return tuple(
        evidence
        for disclosure in disclosures[:MAX_EVIDENCE]
        for evidence in (
            cite(case.transcript, disclosure.turn, "agent", disclosure.question),
            cite(case.transcript, disclosure.turn, "persona", disclosure.quote),
        )
    )


# --- what the agent committed to ------------------------------------------------------------------


def _committed(case: Case, criterion: Criterion, check: CommittedCheck) -> Finding:
    """Decide by commitments: what earns is said clearly, once `given` is known; what costs is the agent's own word."""
    earns = criterion.points > 0
    commitments = [
        [
            one
            for one in case.record.commitments.get(name, ())
            if (one.clear and all_hold(criterion.given, one.spoken_before) if earns else one.binding)
        ]
        for name in check.any_of
    ]
    distinct = [one for commitment in commitments for one in _without_repetitions(commitment)]
    fitting = [one for one in distinct if _well_timed(one.spoken_before, check.after, check.before)]
    if not fitting:
        return NOT_MET
    first = min(fitting, key=lambda one: one.turn)
    return Finding(1.0, (cite(case.transcript, first.turn, "agent", first.quote),))


def _without_repetitions(made: Iterable[MadeCommitment]) -> Iterable[MadeCommitment]:
    """The same words again commit to nothing new, so repeating a promise does not make it well timed."""
    first: dict[str, MadeCommitment] = {}
    for one in made:
        first.setdefault(normal(one.quote), one)
    return first.values()


def _well_timed(known: frozenset[str], after: Needs, before: Needs) -> bool:
    """`after` was all known by then; of `before`, if given, something was not."""
    return all_hold(after, known) and (not before or not all_hold(before, known))


# --- tool calls -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Call:
    """A tool call and what had been said before its turn."""

    turn: int
    use: ToolUse
    known: frozenset[str]


def _tool(case: Case, check: ToolCheck) -> Finding:
    calls = list(_calls(case))
    if check.invalid:
        fitting = [c for c in calls if not c.use.valid and c.use.tool_id in (None, check.tool)]
    elif check.more_than is not None:
        named = [c for c in calls if c.use.tool_id == check.tool]
        fitting = named if len(named) > check.more_than else []
    else:
        fitting = _fitting_calls([c for c in calls if c.use.valid and c.use.tool_id == check.tool], check)
    return Finding(float(bool(fitting)), tuple(_cite_call(case, c.turn) for c in fitting[:MAX_EVIDENCE]))


def _fitting_calls(valid: Sequence[_Call], check: ToolCheck) -> list[_Call]:
    if check.value and not check.wrong and not check.before:
        # A decision is what the agent decided in the end: trying all options must not earn the right one.
        valid = valid[-1:]
    return [
        call
        for call in valid
        if _well_timed(call.known, check.after, check.before)
        and (not check.value or (call.use.input.get("value") in check.value) is not check.wrong)
        and _contains(call.use.input, check.contains)
    ]


def _calls(case: Case) -> Iterator[_Call]:
    for number, turn in enumerate(case.transcript.turns, start=1):
        if turn.uses:
            known = _known_before(case, number)
            yield from (_Call(number, use, known) for use in turn.uses)


def _known_before(case: Case, turn: int) -> frozenset[str]:
    """The topics that the persona had told before a turn."""
    return frozenset(topic for topic, spoken in case.record.spoken.items() if spoken < turn)


def _contains(given: Mapping[str, Any], wanted: Mapping[str, Sequence[str]]) -> bool:
    """True if every field has one of its words or phrases."""
    return all(
        any(normal(phrase) in _field_text(given.get(field)) for phrase in phrases) for field, phrases in wanted.items()
    )


def _field_text(value: Any) -> str:
    return normal(plain(" ".join(str(leaf) for leaf in leaves(value) if leaf is not None)))


def _cite_call(case: Case, turn: int) -> Evidence:
    """A call is evidenced by the message it came with, which may be empty."""
    return cite(case.transcript, turn, "agent", "")


# --- how the agent behaved ------------------------------------------------------------------------

_SHOWN_IN: Mapping[str, Callable[[TurnRecord], int]] = {
    "rude": lambda turn: turn.hearing.rude,
    "empathy": lambda turn: turn.empathy,
    "repeated_question": lambda turn: turn.repeated,
    "interrogation": lambda turn: turn.hearing.interrogation,
    "open_question": lambda turn: turn.open_question,
    "off_topic": lambda turn: turn.hearing.off_topic,
}


def _turns_that_commit(case: Case, names: Iterable[str]) -> frozenset[int]:
    """The turns that make one of the commitments clearly, in words unlike those before."""
    record = case.record
    empathy = [turn.hearing.empathy for turn in record.turns if turn.hearing.empathy]
    turns: list[int] = []
    made = sorted((one for name in names for one in record.commitments.get(name, ())), key=lambda one: one.turn)
    for one in made:
        words = gist_of(one.quote)
        polite = not record.turns[one.turn - 1].hearing.rude
        if one.clear and polite and not one.early and is_new(words, empathy):
            empathy.append(words)
            turns.append(one.turn)
    return frozenset(turns)


def _conduct(case: Case, check: ConductCheck, *, earns: bool) -> Finding:
    """Decide by conduct: a penalty is met at `at_least`; a merit earns a share for each time before that."""
    also = _turns_that_commit(case, check.or_commits)
    shown = [turn for turn in case.record.turns if _SHOWN_IN[check.act](turn) or turn.turn in also]
    if check.after:
        shown = [turn for turn in shown if all_hold(check.after, _known_before(case, turn.turn))]
    seen = sum(_SHOWN_IN[check.act](turn) or 1 for turn in shown)
    if not seen or (seen < check.at_least and not earns):
        return NOT_MET
    return Finding(
        min(1.0, seen / check.at_least),
        tuple(cite(case.transcript, turn.turn, "agent", "") for turn in shown[:MAX_EVIDENCE]),
    )
