"""Holds an exam's figures against the limits, and tells the author what to look at for each failure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from personas.matcher import Matcher
from reward_server.jobs.exam.explain import why_unmet
from reward_server.jobs.exam.marks import Mark
from reward_server.jobs.exam.play import Play
from reward_server.jobs.exam.questions import Understanding
from reward_server.jobs.exam.report import LIMITS, Advice, Figures
from scenarios.exam import BAD, GOOD
from scenarios.library import SealedScenario

_SHOWN = 12
_ORDER_HINTS = {
    "good": "the questions it leaves out (the oracle's second, fifth, …) earn nothing",
    "terse": "the questions it leaves out earn nothing, or both are held down by the same cap",
    "rude": "let rudeness cost, with a failure metric on `conduct: {act: rude}` whose cap is below the other caps",
    "random": "let penalties cap (`points: 0` and a `cap`) instead of wiping out what a question earned",
}


@dataclass(frozen=True)
class Findings:
    """Everything an exam brought to light. Private."""

    scenario: SealedScenario
    figures: Figures
    pairs: Sequence[tuple[Play, Mark]]
    heard: Understanding
    leaks: Sequence[str]
    drawn_out: Sequence[str]
    """Open facts told during probing."""
    never: Sequence[str]
    """Positive criteria that no agent met."""
    always: Sequence[str]
    """Criteria that every agent met."""


def failures(found: Findings, matcher: Matcher) -> tuple[Advice, ...]:
    """Everything that is wrong with a scenario, the gravest first."""
    scenario, figures, pairs = found.scenario, found.figures, found.pairs
    return (
        *_leaks(found.leaks),
        *_mechanics(figures),
        *_oracle(scenario, figures, pairs, matcher),
        *_bad_agents(scenario, figures, pairs),
        *_order(scenario, figures, pairs),
        *_questions(found.heard),
        *_criteria(found.never, found.always),
    )


def _leaks(leaks: Sequence[str]) -> Iterator[Advice]:
    if len(leaks) > LIMITS.leaks_at_most:
        yield Advice(f"{len(leaks)} leaks of closed facts", tuple(leaks[:_SHOWN]))


def _mechanics(figures: Figures) -> Iterator[Advice]:
    if not figures.replay_identical:
        yield Advice("the same play, played again, was not identical")
    if not figures.reward_equal:
        yield Advice("the same transcript got different rewards alone and in a batch")
    if figures.group_spread <= 0:
        yield Advice("agents of different skill all got the same reward: nothing could be learnt from it")


def _oracle(
    scenario: SealedScenario, figures: Figures, pairs: Sequence[tuple[Play, Mark]], matcher: Matcher
) -> Iterator[Advice]:
    if figures.oracle >= LIMITS.oracle_at_least:
        return
    oracles = [pair for pair in pairs if pair[0].agent == "oracle"]
    worst, mark = min(oracles, key=lambda pair: pair[1].reward)
    details = [f"worst with temperament {worst.temperament}, seed {worst.seed}: {worst.turns} turns played"]
    for criterion in scenario.secrets.rubric.criteria:
        value = mark.values.get(criterion.id)
        if criterion.points > 0 and value is not None and value < 1:
            missed = f"missed `{criterion.id}` ({criterion.points:g} points, got {value:.0%})"
            details += [f"{missed}: {why}" for why in why_unmet(scenario, criterion, mark.record, matcher) or [""]]
    details += _held_down(scenario, mark)
    yield Advice(f"the oracle reached {figures.oracle:.2f}, needs {LIMITS.oracle_at_least:.2f}", tuple(details))


def _bad_agents(scenario: SealedScenario, figures: Figures, pairs: Sequence[tuple[Play, Mark]]) -> Iterator[Advice]:
    for agent in BAD:
        best = max(figures.rewards[agent])
        if best > LIMITS.bad_at_most:
            message = f"the {agent} agent reached {best:.2f}, at most {LIMITS.bad_at_most:.2f} is allowed"
            yield Advice(message, tuple(_earned(scenario, agent, pairs)))
    name, reward = figures.best_bad
    if figures.oracle - reward < LIMITS.gap_at_least:
        gap = figures.oracle - reward
        yield Advice(f"the oracle is only {gap:.2f} better than the {name} agent, needs {LIMITS.gap_at_least:.2f}")


def _earned(scenario: SealedScenario, agent: str, pairs: Sequence[tuple[Play, Mark]]) -> Iterator[str]:
    """What the agent's best play got its points for."""
    one, mark = max((p for p in pairs if p[0].agent == agent), key=lambda pair: pair[1].reward)
    yield f"{mark.reward:.2f} with temperament {one.temperament}, seed {one.seed}, {one.turns} turns"
    yield from _held_down(scenario, mark)
    for criterion in sorted(scenario.secrets.rubric.criteria, key=lambda c: -c.points):
        value = mark.values.get(criterion.id)
        if criterion.points > 0 and value:
            evidence = mark.evidence.get(criterion.id, "no evidence")
            yield f"earned `{criterion.id}` ({criterion.points:g} points, {value:.0%}): {evidence}"


def _held_down(scenario: SealedScenario, mark: Mark) -> Iterator[str]:
    """Caps and gates that limited a reward."""
    for criterion in scenario.secrets.rubric.criteria:
        if criterion.cap is not None and mark.values.get(criterion.id):
            evidence = mark.evidence.get(criterion.id, "no evidence")
            yield f"capped at {criterion.cap:g} by `{criterion.id}`: {evidence}"
        elif criterion.points < 0 and mark.values.get(criterion.id):
            yield f"lost {-criterion.points:g} points of {criterion.dimension} to `{criterion.id}`"
    yield from (f"capped by the {flag} gate" for flag in mark.flags)


def _order(scenario: SealedScenario, figures: Figures, pairs: Sequence[tuple[Play, Mark]]) -> Iterator[Advice]:
    if figures.ordered:
        return
    means = ", ".join(f"{agent} {figures.mean(agent):.2f}" for agent in GOOD)
    details: list[str] = []
    for better, worse in pairwise(GOOD):
        tie_is_fine = worse == "random"
        if figures.mean(better) < figures.mean(worse) or (
            figures.mean(better) == figures.mean(worse) and not tie_is_fine
        ):
            details.append(f"{better} is not better than {worse}: {_ORDER_HINTS[worse]}")
            for agent in (better, worse):
                details += [f"  {agent}: {line}" for line in _earned(scenario, agent, pairs)]
    yield Advice(f"the order oracle > good > terse > rude >= random does not hold: {means}", tuple(details))


def _questions(heard: Understanding) -> Iterator[Advice]:
    if heard.hit_rate < LIMITS.hit_rate_at_least:
        message = f"only {heard.hit_rate:.0%} of {heard.probes} paraphrases are understood, needs 90%"
        yield Advice(message, tuple(map(str, heard.misses[:_SHOWN])))
    if heard.foreign_rate > LIMITS.foreign_rate_at_most:
        message = f"{heard.foreign_rate:.0%} of the foreign questions matched something, at most 5% may"
        yield Advice(message, tuple(map(str, heard.false_hits[:_SHOWN])))


def _criteria(never: Sequence[str], always: Sequence[str]) -> Iterator[Advice]:
    if never:
        names = ", ".join(f"`{name}`" for name in never)
        yield Advice(f"no scripted agent met {names}: let the oracle show that it can be met")
    if always:
        names = ", ".join(f"`{name}`" for name in always)
        yield Advice(f"every scripted agent met {names}: it tells nobody apart")


def notes(found: Findings) -> Iterator[str]:
    """Remarks that fail nothing."""
    for criterion in found.scenario.secrets.rubric.criteria:
        values = [mark.values.get(criterion.id) for _, mark in found.pairs]
        if criterion.points <= 0 and not any(values) and any(value is not None for value in values):
            yield f"`{criterion.id}` never fired: the careless script could show that it does"
        if all(value is None for value in values):
            yield f"`{criterion.id}` was decided by no judge here (an LLM judge is needed)"
    yield from (f"probing drew out {told}" for told in found.drawn_out[:_SHOWN])
    if found.heard.hit_rate >= LIMITS.hit_rate_at_least:
        yield from (f"paraphrase missed: {miss}" for miss in found.heard.misses)
    if found.heard.foreign_rate <= LIMITS.foreign_rate_at_most:
        yield from (f"foreign question understood: {miss}" for miss in found.heard.false_hits)
