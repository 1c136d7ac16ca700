"""Explains to an author why a play did not earn a criterion: in which turn, and what was missing.

It reads the record that scoring reads, so an explanation can name what happened but not decide anything.
The text holds private ids and lines of the author's own file; it is for the terminal of the author only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from personas.case import Tier
from personas.compiled import CompiledTopic
from personas.hearing import texts_to_compare
from personas.matcher import Matcher
from personas.matching import Similarity, match, topic_scores
from personas.replay import Record
from scenarios.library import SealedScenario
from scenarios.schema import CommittedCheck, Criterion, ToolCheck


def why_unmet(scenario: SealedScenario, criterion: Criterion, record: Record, matcher: Matcher) -> list[str]:
    """The reasons why a positive criterion was not (fully) met."""
    absent = [name for name in criterion.given if name not in record.elicited]
    if absent:
        return [f"`given` does not hold: {reason}" for reason in _not_elicited(scenario, absent, record, matcher)]
    check = criterion.check
    reasons: Iterable[str] = [f"the `{check.kind}` check did not find what it looks for in the agent's turns"]
    if check.elicited:
        reasons = _elicited(scenario, check.elicited.facts, check.elicited.by_turn, record, matcher)
    elif check.pace:
        reasons = _elicited(scenario, check.pace.facts, check.pace.max_turns, record, matcher)
    elif check.committed:
        reasons = _committed(scenario, check.committed, record, matcher)
    elif check.tool:
        reasons = _tool(check.tool, record)
    elif check.conduct:
        seen = getattr(record.acts, check.conduct.act)
        reasons = [f"`{check.conduct.act}` was noticed {seen} times, needs {check.conduct.at_least}"]
    return list(reasons)


def _elicited(
    scenario: SealedScenario, facts: Iterable[str], by_turn: int | None, record: Record, matcher: Matcher
) -> Iterator[str]:
    for name in facts:
        found = record.elicited.get(name)
        if found is None:
            yield from _not_elicited(scenario, [name], record, matcher)
        elif by_turn is not None and found.turn > by_turn:
            yield f"`{name}` was elicited in turn {found.turn}, later than turn {by_turn}"


def _not_elicited(scenario: SealedScenario, names: Iterable[str], record: Record, matcher: Matcher) -> Iterator[str]:
    for name in names:
        yield f"`{name}` was not elicited: {_why_not_elicited(scenario.case.by_id[name], scenario, record, matcher)}"


def _why_not_elicited(topic: CompiledTopic, scenario: SealedScenario, record: Record, matcher: Matcher) -> str:
    reasons: list[str] = []
    for turn in record.turns:
        for asked in turn.hearing.asked:
            if asked.topic_id == topic.id:
                at = f"asked in turn {turn.turn} (“{asked.question}”)"
                reasons.append(f"{at}, {_closed(topic, turn.turn, turn.hearing.rapport, record)}")
    return "; ".join(reasons) or f"never asked; {_closest(topic, scenario, record, matcher)}"


def _closed(topic: CompiledTopic, turn: int, rapport: float, record: Record) -> str:
    absent = [r for r in topic.gate.requires if record.spoken.get(r, 99) >= turn]
    if absent:
        return f"but {', '.join(f'`{name}`' for name in absent)} had not been said before"
    if topic.tier is Tier.RAPPORT and rapport < topic.gate.rapport:
        return f"with rapport {rapport:g} below {topic.gate.rapport:g}: the agent has to show empathy first"
    if turn <= topic.gate.after_turn:
        return f"but it is closed during the first {topic.gate.after_turn} turns"
    return "but the persona did not tell it (temperament too reserved, or more than two things asked at once)"


def _closest(topic: CompiledTopic, scenario: SealedScenario, record: Record, matcher: Matcher) -> str:
    case = scenario.case
    index = [t.id for t in case.topics].index(topic.id)
    best = (-1.0, "there was no question at all")
    for turn in record.turns:
        questions = turn.hearing.reading.questions
        similarity = Similarity(case, matcher, questions)
        for question in questions:
            row = similarity.row(question)
            score = topic_scores(case, question, row)[index]
            heard = match(case, question, row)
            if score > best[0]:
                as_what = f"heard as `{heard.topic_id}` ({heard.score:.2f})" if heard else "matched nothing"
                best = (score, f"closest was turn {turn.turn} (“{question}”) at {score:.2f}, {as_what}")
    return best[1]


def _committed(scenario: SealedScenario, check: CommittedCheck, record: Record, matcher: Matcher) -> Iterator[str]:
    for name in check.any_of:
        made = record.commitments.get(name, ())
        if not made:
            yield f"`{name}` was never heard; {_closest_statement(name, scenario, record, matcher)}"
        for one in made:
            absent = [a for a in check.after if a not in one.spoken_before]
            if absent:
                missing = ", ".join(f"`{a}`" for a in absent)
                yield f"`{name}` was heard in turn {one.turn}, before {missing} had been said"
            if not one.clear:
                yield f"`{name}` was heard in turn {one.turn} (“{one.quote}”), but not clearly enough to earn anything"


def _closest_statement(name: str, scenario: SealedScenario, record: Record, matcher: Matcher) -> str:
    case = scenario.case
    commitment = next(c for c in case.commitments if c.id == name)
    best = (-1.0, "the agent made no statement")
    for turn in record.turns:
        texts = texts_to_compare(case, turn.hearing.reading)
        similarity = Similarity(case, matcher, texts)
        for text in texts:
            row = similarity.row(text)[commitment.span.start : commitment.span.stop]
            score = float(row.max(initial=0.0))
            if score > best[0]:
                best = (score, f"closest was turn {turn.turn} (“{text}”) at {score:.2f} of {commitment.threshold:.2f}")
    return best[1]


def _tool(check: ToolCheck, record: Record) -> Iterator[str]:
    called = [turn.turn for turn in record.turns if check.tool in turn.tools]
    if not called:
        yield f"there was no valid call of `{check.tool}`"
        return
    for number in called:
        absent = [a for a in check.after if record.spoken.get(a, 99) >= number]
        if absent:
            missing = ", ".join(f"`{a}`" for a in absent)
            yield f"`{check.tool}` was called in turn {number}, before {missing} had been said"
    if check.value or check.contains:
        turns = ", ".join(map(str, called))
        yield f"`{check.tool}` was called in turn {turns}; compare its input with `value` and `contains`"
