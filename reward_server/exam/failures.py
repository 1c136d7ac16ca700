"""Holds an exam's figures against the limits, and tells the author what to look at for each failure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from reward_server.exam.breaches import Unfired
from reward_server.exam.explain import why_unmet
from reward_server.exam.marks import PlayScore
from reward_server.exam.play import ElicitedFact, Play
from reward_server.exam.questions import Understanding
from reward_server.exam.report import LIMITS, Failure, Figures
from scenarios.exam import BAD, NATURAL
from scenarios.library import SealedScenario
from scenarios.spelling import counted

_SHOWN = 12
_ORDER_HINTS = {
    "ok": "what the excellent agent finds out and does more than the ok agent earns nothing, or a cap limits both",
    "poor": "what the ok agent does right earns nothing (ask for less in `given` and `after`), or a cap limits both",
}


@dataclass(frozen=True)
class ExamEvidence:
    """Everything an exam brought to light. Private."""

    scenario: SealedScenario
    figures: Figures
    pairs: Sequence[tuple[Play, PlayScore]]
    heard: Understanding
    leaks: Sequence[str]
    drawn_out: Sequence[ElicitedFact]
    """Open facts told during probing."""
    never: Sequence[str]
    """Positive criteria that no agent met."""
    always: Sequence[str]
    """Criteria that every agent met."""
    unfired: Sequence[Unfired] = ()
    """Breaches, and examples of commitments that a cap rests on, that cost nothing."""


def failures(evidence: ExamEvidence) -> tuple[Failure, ...]:
    """Everything that is wrong with a scenario, the gravest first."""
    scenario, figures, pairs = evidence.scenario, evidence.figures, evidence.pairs
    return (
        *_leaks(evidence.leaks),
        *_mechanics(figures),
        *_oracle(scenario, figures, pairs),
        *_bad_agents(scenario, figures, pairs),
        *_order(scenario, figures, pairs),
        *_criteria(scenario, evidence.never, evidence.always, pairs),
        *_unfired(evidence.unfired),
    )


def _leaks(leaks: Sequence[str]) -> Iterator[Failure]:
    if len(leaks) > LIMITS.leaks_at_most:
        yield Failure(f"{len(leaks)} leaks of closed facts", tuple(leaks[:_SHOWN]))


def _mechanics(figures: Figures) -> Iterator[Failure]:
    if not figures.replay_identical:
        yield Failure("the same play was different when it was played again")
    if not figures.reward_equal:
        yield Failure("the same transcript got different rewards alone and in a batch")
    if figures.group_spread <= 0:
        yield Failure("varied agents all got the same reward: nothing can be learned from that")


def _oracle(scenario: SealedScenario, figures: Figures, pairs: Sequence[tuple[Play, PlayScore]]) -> Iterator[Failure]:
    if figures.oracle >= LIMITS.oracle_at_least:
        return
    oracles = [pair for pair in pairs if pair[0].agent == "oracle"]
    worst, mark = min(oracles, key=lambda pair: pair[1].reward)
    details = [f"worst with temperament {worst.temperament}, seed {worst.seed}: {worst.turns} turns played"]
    details += missed(scenario, mark)
    yield Failure(f"the oracle reached {figures.oracle:.2f}, needs {LIMITS.oracle_at_least:.2f}", tuple(details))


def missed(scenario: SealedScenario, mark: PlayScore) -> Iterator[str]:
    """The points that a play did not earn, and why."""
    for criterion in scenario.secrets.rubric.criteria:
        value = mark.values.get(criterion.id)
        if criterion.points > 0 and value is not None and value < 1:
            missed = f"missed `{criterion.id}` ({criterion.points:g} points, got {value:.0%})"
            yield from (f"{missed}: {why}" for why in why_unmet(scenario, criterion, mark) or [""])
    yield from _held_down(scenario, mark)


def _bad_agents(
    scenario: SealedScenario, figures: Figures, pairs: Sequence[tuple[Play, PlayScore]]
) -> Iterator[Failure]:
    for agent in BAD:
        mean = figures.mean(agent)
        if mean > figures.bad_at_most:
            message = f"the {agent} policy reached {mean:.2f}, at most {figures.bad_at_most:.2f} is allowed"
            yield Failure(message, tuple(earned(scenario, agent, pairs)))


def earned(scenario: SealedScenario, agent: str, pairs: Sequence[tuple[Play, PlayScore]]) -> Iterator[str]:
    """The points that the agent's best play got."""
    one, mark = max((p for p in pairs if p[0].agent == agent), key=lambda pair: pair[1].reward)
    yield f"{mark.reward:.2f} with temperament {one.temperament}, seed {one.seed}, {one.turns} turns"
    yield from _held_down(scenario, mark)
    for criterion in sorted(scenario.secrets.rubric.criteria, key=lambda c: -c.points):
        value = mark.values.get(criterion.id)
        if criterion.points > 0 and value:
            evidence = mark.evidence.get(criterion.id, "no evidence")
            yield f"earned `{criterion.id}` ({criterion.points:g} points, {value:.0%}): {evidence}"


def _held_down(scenario: SealedScenario, mark: PlayScore) -> Iterator[str]:
    """Caps and gates that limited a reward."""
    for criterion in scenario.secrets.rubric.criteria:
        if criterion.cap is not None and mark.values.get(criterion.id):
            evidence = mark.evidence.get(criterion.id, "no evidence")
            yield f"capped at {criterion.cap:g} by `{criterion.id}`: {evidence}"
        elif criterion.points < 0 and mark.values.get(criterion.id):
            yield f"lost {-criterion.points:g} points of {criterion.dimension} to `{criterion.id}`"
    yield from (f"capped by the {flag} gate" for flag in mark.flags)


def _order(scenario: SealedScenario, figures: Figures, pairs: Sequence[tuple[Play, PlayScore]]) -> Iterator[Failure]:
    if figures.ordered:
        return
    means = ", ".join(f"{agent} {figures.mean(agent):.2f}" for agent in NATURAL)
    details: list[str] = []
    for better, worse in pairwise(NATURAL):
        if figures.mean(better) <= figures.mean(worse):
            details.append(f"{better} is not better than {worse}: {_ORDER_HINTS[worse]}")
            for agent in (better, worse):
                details += [f"  {agent}: {line}" for line in earned(scenario, agent, pairs)]
    yield Failure(f"the order excellent > ok > poor does not hold: {means}", tuple(details))


def _criteria(
    scenario: SealedScenario, never: Sequence[str], always: Sequence[str], pairs: Sequence[tuple[Play, PlayScore]]
) -> Iterator[Failure]:
    if never:
        names = ", ".join(f"`{name}`" for name in never)
        _, oracle = next(pair for pair in pairs if pair[0].agent == "oracle")
        missing = [criterion for criterion in scenario.secrets.rubric.criteria if criterion.id in never]
        reasons = [f"`{each.id}`: {why}" for each in missing for why in why_unmet(scenario, each, oracle)]
        message = f"no scripted agent met {names}: let the oracle meet them, to show that it is possible"
        yield Failure(message, tuple(reasons))
    if always:
        names = ", ".join(f"`{name}`" for name in always)
        yield Failure(f"every scripted agent met {names}: such a criterion does not distinguish agents")


def _unfired(unfired: Sequence[Unfired]) -> Iterator[Failure]:
    written = [each for each in unfired if each.breach]
    if written:
        lines = tuple(map(str, written))
        todo = "add examples in such words, or read with a decision model"
        yield Failure(f"{counted(len(lines), 'line')} of `breaches` cost nothing: {todo}", lines)
