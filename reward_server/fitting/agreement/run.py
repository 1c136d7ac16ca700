"""Measures judges on a file: scores, attacks and repeats in, figures out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from reward_server.errors import InvalidRequest
from reward_server.fitting.agreement.attacks import ATTACKS
from reward_server.fitting.agreement.figures import figures, injection, noise, require
from reward_server.fitting.agreement.pairs import PairComparer, compared
from reward_server.fitting.agreement.read import ConversationSide, LabelledEntry
from reward_server.fitting.agreement.scores import AgreementScorer, JudgeScores, MeasuredJudges, attacked
from reward_server.preferences.figures import Figures
from reward_server.scoring.scorer import Scorer
from scenarios.library import Vault

PAIRWISE = "llm"
"""What the language model is called as a judge of pairs."""
Progress = Callable[[int, int], None]
"""Hears of conversations scored, and of all that will be."""


@dataclass(frozen=True)
class AgreementTask:
    """The subject of a measurement."""

    judges: MeasuredJudges
    attacked: int
    """How many conversations are attacked and read again; 0 for none."""
    pairwise: PairComparer | None = None
    """The language model as a judge of pairs, where it is asked for."""


def of_scores(entries: Sequence[LabelledEntry]) -> Figures:
    """Figures of scores that were made before; attacks and repeats need the judges themselves."""
    sides = [side for entry in entries for side in entry.sides]
    names = list(sides[0].scores)
    scores = {name: np.array([side.scores[name] for side in sides]) for name in names}
    return require(figures(entries, JudgeScores(scores, {}, {})), entries)


async def of_judges(
    entries: Sequence[LabelledEntry], scorer: Scorer, vault: Vault, task: AgreementTask, on_progress: Progress
) -> Figures:
    """Figures of judges of this machine.

    Raises:
        InvalidRequest: a conversation cannot be read, a judge is not here, or no judge scored anything.
    """
    sides = [side for entry in entries for side in entry.sides]
    sample = _sample(len(sides), task.attacked)
    total = task.judges.passes * (len(sides) + (len(ATTACKS) + 1) * len(sample))
    total += len(entries) if task.pairwise else 0
    done = 0

    def on_scored(count: int) -> None:
        nonlocal done
        done += count
        on_progress(done, total)

    scoring = AgreementScorer(scorer, vault, task.judges, on_scored)
    scoring.check(sides)
    given = await scoring.give(sides)
    silent = [name for name, scores in given.scores.items() if not np.isfinite(scores).any()]
    if silent:
        reasons = ", ".join(given.failures) or "no criterion of these scenarios is decided by it"
        raise InvalidRequest(f"The judge {silent[0]} scored none of the conversations ({reasons}).")
    if task.pairwise is not None:
        entries, failed = await compared(entries, scorer, vault, task.pairwise, name=PAIRWISE, on_done=on_scored)
        if failed:
            given.failures[f"{PAIRWISE}: judge_failed"] = failed
    measured = require(figures(entries, given), entries)
    if sample and given.scores:
        measured |= await _under_attack(scoring, [sides[index] for index in sample], given, sample)
    return measured | {"failures": given.failures, "scoring_version": scorer.scoring_version}


async def _under_attack(
    scoring: AgreementScorer, sides: Sequence[ConversationSide], given: JudgeScores, sample: list[int]
) -> Figures:
    # In another order, so that a judge whose score depends on its neighbours shows it.
    again = await scoring.give(sides[::-1])
    after = {attack: await scoring.give([attacked(side, text) for side in sides]) for attack, text in ATTACKS.items()}
    for when, later in {"read again": again, **after}.items():
        given.failures.update({f"{failure} ({when})": count for failure, count in later.failures.items()})
    base = {name: scores[sample] for name, scores in given.scores.items()}
    return {
        "injection": {
            name: injection(values, {attack: attacked.scores[name] for attack, attacked in after.items()})
            for name, values in base.items()
        },
        "noise": {
            name: noise(values, again.scores[name][::-1], given.uncertainty[name]) for name, values in base.items()
        },
    }


def _sample(rows: int, wanted: int) -> list[int]:
    """Evenly spread places, all of them where there are few."""
    return (
        sorted(set(np.linspace(0, rows - 1, min(rows, wanted)).round().astype(int).tolist())) if wanted and rows else []
    )
