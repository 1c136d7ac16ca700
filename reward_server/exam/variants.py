"""Examines the variants of a scenario: each oracle must earn its reward in its own, and little in the others.

A script that knows one variant by heart is a breach of all the others: it acts on what is not true there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from personas.case.temperament import Temperament
from personas.reading.reader import Reader
from reward_server.exam.failures import missed
from reward_server.exam.marks import PlayScore, PlayScorer
from reward_server.exam.play import Play, play
from reward_server.exam.report import Failure, Note
from scenarios.exam import ORACLE, agents
from scenarios.library import SealedScenario

ORACLE_AT_LEAST = 0.95
BLIND_AT_MOST = 0.35


@dataclass(frozen=True)
class VariantsFound:
    """What the exam of the variants found."""

    failures: list[Failure] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    plays: int = 0


async def examine_variants(
    variants: Sequence[SealedScenario],
    temperaments: Mapping[str, Temperament],
    reader: Reader,
    marker: PlayScorer,
    seed: int,
) -> VariantsFound:
    """Play every variant's oracle in its own variant with every temperament, and in the others with the first one."""
    if len(variants) < 2:
        return VariantsFound()
    failures: list[Failure] = []
    blind: list[tuple[str, str, float]] = []
    count = 0
    for case in variants:
        slugs = case.secrets.persona.temperaments
        own = [_played(case, case, temperaments[slug], reader, seed) for slug in slugs]
        others = [other for other in variants if other is not case]
        replays = [_played(other, case, temperaments[slugs[0]], reader, seed) for other in others]
        marks = await marker.mark(case, [*own, *replays])
        failures += _own(case, own, marks[: len(own)])
        blind += [(o.variant, case.variant, m.reward) for o, m in zip(others, marks[len(own) :], strict=True)]
        count += len(marks)
    return VariantsFound(failures, list(_blind(blind)), count)


def _played(of: SealedScenario, case: SealedScenario, temperament: Temperament, reader: Reader, seed: int) -> Play:
    return play(case, temperament, agents(of.secrets, of.topics, None)[ORACLE], reader, seed)


def _own(case: SealedScenario, plays: Sequence[Play], marks: Sequence[PlayScore]) -> Iterator[Failure]:
    leaks = [f"{each.temperament}, {leak}" for each in plays for leak in each.leaks]
    if leaks:
        yield Failure(f"{len(leaks)} leaks of closed facts in the variant `{case.variant}`", tuple(leaks[:12]))
    worst = min(marks, key=lambda mark: mark.reward)
    if worst.reward < ORACLE_AT_LEAST and case.split is not None:
        told = f"in the variant `{case.variant}`, the oracle reached {worst.reward:.2f}, needs {ORACLE_AT_LEAST:.2f}"
        yield Failure(told, tuple(missed(case, worst)))


def _blind(found: Sequence[tuple[str, str, float]]) -> Iterator[Note]:
    mean = fmean(reward for *_, reward in found)
    high = [each for each in found if each[2] > BLIND_AT_MOST]
    if mean > BLIND_AT_MOST:
        details = tuple(f"that of `{of}` in `{case}`: {reward:.2f}" for of, case, reward in high)
        told = "make the variants differ in what is right, or cap what is wrong in them"
        yield Note(f"{told}: the oracle of one, replayed in another, reached {mean:.2f} on average", details)
