"""Explains to an author why a play did not earn a criterion: in which turn, and what was missing.

It reads the record that scoring reads, so an explanation can name what happened but not decide anything.
The text holds private ids and lines of the author's own file; it is for the terminal of the author only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from personas.case.compiled import CompiledTopic
from personas.case.schema import Needs, Tier, all_hold, named_in
from personas.hearing.hear import MADE
from personas.reading.acts import ReadCandidate, Sentence
from personas.replay.replayer import Record
from reward_server.exam.marks import PlayScore
from scenarios.library import SealedScenario
from scenarios.schema import CommittedCheck, Criterion, ToolCheck
from scenarios.spelling import counted


def why_unmet(scenario: SealedScenario, criterion: Criterion, mark: PlayScore) -> list[str]:
    """The reasons why a positive criterion was not (fully) met."""
    record = mark.record
    absent = _absent(criterion.given, record.elicited)
    if absent:
        reasons = _not_elicited(scenario, absent, record)
        return [f"`given` does not hold: {reason}" for reason in reasons]
    check = criterion.check
    found: Iterable[str] = [f"the `{check.kind}` check did not find what it looks for in the agent's turns"]
    if check.elicited:
        found = _elicited(scenario, check.elicited.facts, check.elicited.by_turn, record)
    elif check.pace:
        found = _elicited(scenario, check.pace.facts, check.pace.max_turns, record)
    elif check.committed:
        found = _committed(check.committed, record)
    elif check.tool:
        found = _tool(check.tool, mark)
    elif check.conduct:
        seen = getattr(record.acts, check.conduct.act)
        late = f" after {', '.join(named_in(check.conduct.after))} was told" if check.conduct.after else ""
        found = [f"`{check.conduct.act}` was seen {counted(seen, 'time')}{late}, and needs {check.conduct.at_least}"]
    return list(found)


def _absent(needs: Needs, known: Iterable[str]) -> list[str]:
    """The needs that are missing; of alternatives, the first."""
    known = frozenset(known)
    missing = (need for need in needs if not all_hold((need,), known))
    return [need if isinstance(need, str) else need[0] for need in missing]


def _elicited(scenario: SealedScenario, facts: Iterable[str], by_turn: int | None, record: Record) -> Iterator[str]:
    for name in facts:
        found = record.elicited.get(name)
        if found is None:
            yield from _not_elicited(scenario, [name], record)
        elif by_turn is not None and found.turn > by_turn:
            yield f"`{name}` was elicited in turn {found.turn}, later than turn {by_turn}"


def _not_elicited(scenario: SealedScenario, names: Iterable[str], record: Record) -> Iterator[str]:
    for name in names:
        yield f"`{name}` was not elicited: {_why_not_elicited(scenario.case.by_id[name], record)}"


def _why_not_elicited(topic: CompiledTopic, record: Record) -> str:
    reasons: list[str] = []
    for turn in record.turns:
        for asked in turn.hearing.asked:
            if asked.topic_id == topic.id:
                at = f"asked in turn {turn.turn} (“{asked.question}”)"
                reasons.append(f"{at}, {_closed(topic, turn.turn, turn.hearing.rapport, record)}")
    return "; ".join(reasons) or f"never asked; {_closest(topic.id, record)}"


def _closed(topic: CompiledTopic, turn: int, rapport: float, record: Record) -> str:
    absent = _absent(topic.gate.requires, _spoken_before(record, turn))
    if absent:
        return f"but {', '.join(f'`{name}`' for name in absent)} had not been said before"
    if topic.tier is Tier.RAPPORT and rapport < topic.gate.rapport:
        return f"with rapport {rapport:g} below {topic.gate.rapport:g}: the agent has to show empathy first"
    if turn <= topic.gate.after_turn:
        return f"but it is closed during the first {topic.gate.after_turn} turns"
    return "but the persona did not tell it (temperament too reserved, or more than two things asked at once)"


def _spoken_before(record: Record, turn: int) -> frozenset[str]:
    return frozenset(name for name, spoken in record.spoken.items() if spoken < turn)


def _closest(topic: str, record: Record) -> str:
    """The sentence most probably about a topic, and what it was heard as."""
    best: tuple[float, int, Sentence] | None = None
    for turn in record.turns:
        for sentence in turn.hearing.reading.readable:
            found = next((each for each in sentence.topics if each.id == topic), None)
            if found is not None and (best is None or found.confidence > best[0]):
                best = found.confidence, turn.turn, sentence
    if best is None:
        return "no sentence came close to it"
    confidence, number, sentence = best
    return f"closest was turn {number} (“{sentence.text}”) at {confidence:.2f}, {_likeliest(sentence.topics)}"


def _likeliest(found: tuple[ReadCandidate, ...]) -> str:
    return f"most probably `{found[0].id}` ({found[0].confidence:.2f})" if found else "about nothing in the case"


def _committed(check: CommittedCheck, record: Record) -> Iterator[str]:
    for name in check.any_of:
        made = record.commitments.get(name, ())
        if not made:
            yield f"`{name}` was never heard; {_closest_statement(name, record)}"
        for one in made:
            absent = _absent(check.after, one.spoken_before)
            if absent:
                missing = ", ".join(f"`{each}`" for each in absent)
                yield f"`{name}` was heard in turn {one.turn}, before {missing} had been said"
            if not one.clear:
                yield f"`{name}` was heard in turn {one.turn} (“{one.quote}”), but not in the agent's own words"


def _closest_statement(name: str, record: Record) -> str:
    best = (0.0, "no sentence came close to it")
    for turn in record.turns:
        for sentence in turn.hearing.reading.readable:
            for each in sentence.commitments:
                if each.id == name and each.confidence > best[0]:
                    best = (
                        each.confidence,
                        f"closest was turn {turn.turn} (“{sentence.text}”), heard at {each.confidence:.2f}, "
                        f"needs {MADE:.2f}",
                    )
    return best[1]


def _tool(check: ToolCheck, mark: PlayScore) -> Iterator[str]:
    called = [(turn, use.input) for turn, use in mark.calls if use.valid and use.tool_id == check.tool]
    if not called:
        yield f"there was no valid call of `{check.tool}`"
        return
    for number, _ in called:
        absent = _absent(check.after, _spoken_before(mark.record, number))
        if absent:
            missing = ", ".join(f"`{each}`" for each in absent)
            yield f"`{check.tool}` was called in turn {number}, before {missing} had been said"
    if check.value or check.contains:
        calls = ", ".join(f"in turn {turn} with {json.dumps(given, ensure_ascii=False)}" for turn, given in called)
        value = "`value` (the right ones: the check says `wrong`)" if check.wrong else "`value`"
        wanted = " and ".join([*([value] if check.value else []), *(["`contains`"] if check.contains else [])])
        yield f"`{check.tool}` was called {calls}; compare it with {wanted}"
