"""Remarks of an exam that fail nothing: one line each, what to do first; what they rest on stands behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from reward_server.exam.failures import ExamEvidence, earned, missed
from reward_server.exam.marks import PlayScore
from reward_server.exam.play import Play
from reward_server.exam.report import LEVELS, LIMITS, Note
from scenarios.exam import BAD
from scenarios.spelling import counted

NAMED = 3
"""Names in a line; how many more there are follows."""


def notes(evidence: ExamEvidence) -> Iterator[Note]:
    """All of them, those about rewards first."""
    yield from _undecided(evidence)
    yield from _levels(evidence)
    yield from _unmeasured(evidence)
    yield from _bad_agents(evidence)
    yield from _drawn_out(evidence)
    yield from _misheard(evidence)
    yield from _unfired(evidence)


def _undecided(evidence: ExamEvidence) -> Iterator[Note]:
    names = [
        criterion.id
        for criterion in evidence.scenario.secrets.rubric.criteria
        if all(mark.values.get(criterion.id) is None for _, mark in evidence.pairs)
    ]
    if names:
        yield Note(f"set up an LLM judge to decide {_named(names)}: none is set up here")


def _levels(evidence: ExamEvidence) -> Iterator[Note]:
    """The notes on a natural agent whose mean reward lies outside of what is expected of it."""
    if not evidence.figures.has_natural:
        name = f"{evidence.scenario.card.slug}.agents.yaml"
        wanted = f"write excellent, ok and poor in {name}"
        yield Note(f"let somebody who has not seen the rubric {wanted}: there are no natural agents")
        return
    for agent, (low, high) in LEVELS.items():
        mean = evidence.figures.mean(agent)
        if low <= mean <= high:
            continue
        plays = [pair for pair in evidence.pairs if pair[0].agent == agent]
        got = f"it got {mean:.2f}, expected {low:.2f} to {high:.2f}"
        if mean < low:
            _, mark = min(plays, key=lambda pair: pair[1].reward)
            lines = tuple(missed(evidence.scenario, mark))
            yield Note(f"ask less of the {agent} agent, or improve its script: {got}", lines)
        else:
            yield Note(f"ask more of the {agent} agent: {got}", tuple(earned(evidence.scenario, agent, evidence.pairs)))


def _bad_agents(evidence: ExamEvidence) -> Iterator[Note]:
    for agent in BAD:
        mean = evidence.figures.mean(agent)
        if LIMITS.bad_aim < mean <= evidence.figures.bad_at_most:
            paid = _paid(evidence, agent, evidence.pairs)
            first = f"guard {_named(paid)} with `given`" if paid else "see what else it is paid for"
            text = f"{first}: the {agent} policy got {mean:.2f}, expected at most {LIMITS.bad_aim:.2f}"
            yield Note(text, tuple(earned(evidence.scenario, agent, evidence.pairs)))


def _paid(evidence: ExamEvidence, agent: str, pairs: Sequence[tuple[Play, PlayScore]]) -> list[str]:
    """The points of the agent's best play, the most first."""
    _, mark = max((p for p in pairs if p[0].agent == agent), key=lambda pair: pair[1].reward)
    criteria = [c for c in evidence.scenario.secrets.rubric.criteria if c.points > 0 and mark.values.get(c.id)]
    return [c.id for c in sorted(criteria, key=lambda c: -c.points)]


def _drawn_out(evidence: ExamEvidence) -> Iterator[Note]:
    if not evidence.drawn_out:
        return
    names = Counter(each.fact for each in evidence.drawn_out)
    ordered = [name for name, _ in names.most_common()]
    them = "it" if len(ordered) == 1 else "them"
    text = f"give {_named(ordered)} a `gate`, if “tell me everything” should not bring {them} out"
    first = {each.fact: each.words for each in reversed(evidence.drawn_out)}
    lines = tuple(f"`{name}` {counted(names[name], 'time')}, as after “{first[name]}”" for name in ordered)
    yield Note(f"{text}: probing did so {counted(len(evidence.drawn_out), 'time')}", lines)


def _unmeasured(evidence: ExamEvidence) -> Iterator[Note]:
    """Oracle and bad policies say nothing of it: one has the author's words, the others understand nothing."""
    if not evidence.figures.has_natural and not evidence.figures.understood["specific understood"].of:
        yield Note("write labelled turns or natural agents: how much the persona understands was not measured")


def _misheard(evidence: ExamEvidence) -> Iterator[Note]:
    if misses := evidence.heard.misses:
        many = f"{counted(len(misses), 'line')} {'was' if len(misses) == 1 else 'were'}"
        yield Note(f"add labelled turns, or make what is alike more different: {many} not understood as meant", misses)


def _unfired(evidence: ExamEvidence) -> Iterator[Note]:
    examples = [each for each in evidence.unfired if not each.breach]
    if examples:
        text = "reword examples that cost nothing"
        if any(each.question for each in examples):
            text += ", or allow questions (`also_questions`)"
        lines = tuple(map(str, examples))
        yield Note(f"{text}: {counted(len(lines), 'example')} of a commitment with a cap", lines)


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:NAMED])
    return shown if len(names) <= NAMED else f"{shown} and {len(names) - NAMED} more"
