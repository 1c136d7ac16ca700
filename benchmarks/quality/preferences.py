"""hh-rlhf harmless: which of two replies people prefer, how sure the head is, and where it had better abstain."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality import plots
from benchmarks.quality.data import Pair
from benchmarks.quality.figures import NOT_KNOWN, Floats, Indices, beaten, folds_of, share, wins
from benchmarks.quality.heads import cosines, preference_head, words
from benchmarks.report import Table
from reward_server.fitting.calibration.calibration_data import JudgedPairs
from reward_server.fitting.calibration.calibration_fit import ReliabilityData, judged
from reward_server.reward_models.features import ConversationFeaturiser
from reward_server.reward_models.posterior import LinearPosterior
from reward_server.reward_models.reliability import FigureInterval, calibration_error, risk_coverage

HEADS = 10
FIRST = 0.643
"""Of a frozen encoder with a Bradley-Terry head on the concatenated reply, before this featuriser was built."""


@dataclass(frozen=True)
class Sides:
    """Features of both sides of pairs."""

    chosen: NDArray[np.float32]
    rejected: NDArray[np.float32]

    @property
    def differences(self) -> NDArray[np.float32]:
        """(n, width)."""
        return self.chosen - self.rejected


def sides(featuriser: ConversationFeaturiser, pairs: Sequence[Pair]) -> Sides:
    """Both sides in one call, so that each sentence is encoded once."""
    rows = featuriser.features([*(pair.chosen for pair in pairs), *(pair.rejected for pair in pairs)])
    return Sides(rows[: len(pairs)], rows[len(pairs) :])


@dataclass(frozen=True)
class HeldOut:
    """What heads said of pairs they had not seen, as log-odds of the preferred side."""

    margins: Floats
    spread: Floats
    """Epistemic standard deviation of the log-odds."""


def held_out(featuriser: ConversationFeaturiser, differences: NDArray[np.float32], groups: Sequence[str]) -> HeldOut:
    """Ten folds by dialogue: with so few pairs, what is left out of training is missed."""
    margins, spread = np.zeros(len(groups)), np.zeros(len(groups))
    for fold, (train, test) in enumerate(folds_of(groups, HEADS)):
        print(f"\r  hh: head {fold + 1} of {HEADS} ", end="", file=sys.stderr, flush=True)
        found = preference_head(featuriser, differences[train]).predict(differences[test])
        margins[test], spread[test] = found.mean, found.epistemic_std
    print(file=sys.stderr)
    return HeldOut(margins, spread)


def tables(featuriser: ConversationFeaturiser, pairs: Sequence[Pair]) -> tuple[list[str], LinearPosterior]:
    """The section of the report, and a head fitted on all pairs for the transfer rows."""
    groups = [pair.group for pair in pairs]
    differences = sides(featuriser, pairs).differences
    found = held_out(featuriser, differences, groups)
    accuracy = share(wins(found.margins), groups)
    lengths = np.array([float(words(pair.chosen) - words(pair.rejected)) for pair in pairs])
    cosine = cosines(featuriser, differences)
    table = Table(
        f"hh-rlhf harmless: accuracy on {len(pairs)} pairs of {len(set(groups))} dialogues, ten-fold by dialogue",
        ["judge", "accuracy [95 %]", "first number", "beaten"],
    )
    table.add("chance", "0.500", "", "")
    table.add("the longer reply", share(wins(lengths), groups), "0.440", "")
    table.add("the shorter reply", share(wins(-lengths), groups), "0.560", "")
    table.add("the reply closer to the question (cosine)", share(wins(cosine), groups), "0.420", "")
    table.add("learned head, frozen encoder", accuracy, f"{FIRST:.3f}", beaten(accuracy, FIRST))
    table.add("people among themselves", f"{NOT_KNOWN} (one label per pair)", "", "")
    plots.risk_coverage("hh: risk over coverage", "hh_risk_coverage", np.abs(found.margins), 1.0 - wins(found.margins))
    return [table.text(), _calibration(found, groups), _selective(found, groups)], preference_head(
        featuriser, differences
    )


def calibrated(margins: Floats, groups: Sequence[str]) -> ReliabilityData:
    """Chances before and after the product's temperature, cross-fitted by dialogue; sides are dealt evenly."""
    signs = np.where(np.arange(len(margins)) % 2 == 0, 1.0, -1.0)
    rewards = {"reward": margins * signs}, {"reward": np.zeros(len(margins))}
    data = JudgedPairs(*rewards, outcomes=(signs + 1.0) / 2.0, groups=tuple(groups))
    judgement = judged(data, "temperature", "reward")
    if judgement is None:
        raise ValueError("pairs always have a reliability diagram")
    return judgement


def _calibration(found: HeldOut, groups: Sequence[str]) -> str:
    table = Table("hh: calibration of the chances", ["chances", "ECE [95 %]", "log loss, nats [95 %]"])
    judgement = calibrated(found.margins, groups)
    shown = {"as fitted": judgement.before, "with a temperature": judgement.after}
    for name, chances in shown.items():
        loss = -np.log(np.where(judgement.observed > 0.5, chances, 1.0 - chances))
        table.add(name, calibration_error(chances, judgement.observed, groups), share(loss, groups))
    table.add("always 0.5", "0.000", f"{np.log(2.0):.3f}")
    plots.reliability("hh: stated against observed", "hh_reliability", shown, judgement.observed)
    return table.text()


def _selective(found: HeldOut, groups: Sequence[str]) -> str:
    table = Table(
        "hh: accuracy on the pairs a judge is surest of", ["sorted by", "25 %", "50 %", "75 %", "all", "AURC"]
    )
    errors = 1.0 - wins(found.margins)
    ways = {
        "size of the margin": -np.abs(found.margins),
        "margin over its spread": -np.abs(found.margins) / found.spread,
        "spread alone": found.spread,
    }
    for name, doubt in ways.items():
        curve = risk_coverage(doubt, errors)
        parts = [str(_surest(doubt, errors, part, groups)) for part in (0.25, 0.5, 0.75, 1.0)]
        table.add(name, *parts, f"{curve.aurc:.3f} (at random {curve.random:.3f}, best {curve.oracle:.3f})")
    return table.text()


def _surest(doubt: Floats, errors: Floats, part: float, groups: Sequence[str]) -> FigureInterval:
    rows: Indices = np.argsort(doubt, kind="stable")[: round(len(doubt) * part)]
    return share(1.0 - errors[rows], [groups[row] for row in rows])
