"""Fits the reader's calibration of a lab's own collection on its labelled turns, and says whether it helps.

Two maps of log odds, for topics and for commitments (Platt 1999), with a prior at the identity: few turns cannot
take the reader apart. What is measured was never fitted on: the turns are read in folds, each with a case
that has the examples of the others alone, and judged with maps of the others alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from personas.case.calibration import LOWEST, PlattScaling, ReaderCalibration
from personas.case.compiled import CompiledCase, with_examples
from personas.reading.acts import ReadCandidate, Reading
from personas.reading.calibrated import calibrated
from personas.reading.reader import LocalReader
from reward_server.fitting.reader.dataset import Cases, ReaderRow, case_of, opened_by
from reward_server.fitting.reader.evaluate import AT_ONCE, Share, TurnPrediction, all_measured, prediction_of
from scenarios.calibration import CALIBRATION_FILE, CalibrationFile, ScalingEntry
from scenarios.spelling import counted
from scenarios.turns import BACKGROUND_KIND, LabelledTurn, examples_of

FOLDS = 5
LEAST = 20
"""Fewer labelled turns fit nothing."""
RELIABLE = 200
"""So many make the figures reliable."""
CHANCE = 0.05
"""A gain that would come about by chance more often than this is none."""
PRIOR_SCALE, PRIOR_SHIFT = 20.0, 1.0
"""Weight of the prior, set by hand: a few labels move the shift, many the scale."""
STEPS = 50

Vector = NDArray[np.float64]
Report = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class ReadTurn:
    """A labelled turn, its fold, the case without its examples, and what the reader makes of it uncalibrated."""

    row: ReaderRow
    fold: int
    case: CompiledCase
    reading: Reading


@dataclass(frozen=True, slots=True)
class OwnFit:
    """A calibration and what it does, on turns that neither maps nor examples had."""

    calibration: ReaderCalibration
    turns: int
    before: tuple[TurnPrediction, ...]
    after: tuple[TurnPrediction, ...]

    @property
    def gains(self) -> tuple[int, ...]:
        """What each turn gains by it, wrong answers counted against it; negative where it loses."""
        return tuple(gain_of([new]) - gain_of([old]) for old, new in zip(self.before, self.after, strict=True))

    @property
    def helps(self) -> bool:
        """True if more is understood, beyond what chance would give."""
        return chance_of(self.gains) <= CHANCE

    @property
    def verdict(self) -> str:
        """On how many turns it is better and worse, and what follows."""
        gains = self.gains
        better, worse = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
        found = f"better on {counted(better, 'turn')}, worse on {worse}"
        if self.helps:
            return f"{found}: more than chance"
        if sum(gains) <= 0:
            return f"{found}: no better than without"
        return f"{found}: no more than chance; label more turns, {RELIABLE} make the figures reliable"


def fit_own(reader: LocalReader, rows: Sequence[ReaderRow], cases: Cases, report: Report | None = None) -> OwnFit:
    """The calibration of one collection; blocking, a minute for 200 turns on two cores.

    Args:
        reader: the reader that will serve.
        rows: all labelled turns of the collection; those about its background are left aside.
        cases: its cases, with their authors' examples alone.
        report: is told what is done, the step and the number of steps.

    Raises:
        ValueError: fewer turns than can be fitted on.
    """
    rows = [row for row in rows if row.turn.kind != BACKGROUND_KIND]
    if len(rows) < LEAST:
        raise ValueError(f"{len(rows)} labelled turns: at least {LEAST} are needed; write more")
    read = _read_in_folds(reader, rows, cases, report)
    apart = {fold: _fitted(reader, [turn for turn in read if turn.fold != fold]) for fold in range(FOLDS)}
    before = tuple(prediction_of(turn.case, turn.row, turn.reading) for turn in read)
    after = tuple(prediction_of(turn.case, turn.row, calibrated(turn.reading, apart[turn.fold])) for turn in read)
    return OwnFit(_fitted(reader, read), len(rows), before, after)


def gain_of(predictions: Iterable[TurnPrediction]) -> int:
    """Facts and commitments rightly understood, less those that were not meant."""
    gained = 0
    for prediction in predictions:
        turn = prediction.row.turn
        right = set(prediction.asks) & set(turn.asks)
        gained += len(right) if turn.kind in ("specific", "double") else bool(right)
        gained -= bool(prediction.asks) and not right
        made = set(prediction.commits)
        gained += len(made & set(turn.commits)) - len(made - set(turn.commits))
    return gained


def chance_of(gains: Iterable[int]) -> float:
    """How often a calibration that changes nothing for the better would gain as much or more, on the same turns.

    The paired sign-flip test (Fisher 1935), exact and one-sided: each turn that changed is as likely to have lost what
    it gained. For many turns it is the sum of the gains against 1.64 times the root of the sum of their squares.
    """
    changes = [gain for gain in gains if gain]
    sums = {0: 1.0}
    for change in changes:
        flipped: dict[int, float] = {}
        for total, likely in sums.items():
            for way in (total + change, total - change):
                flipped[way] = flipped.get(way, 0.0) + likely / 2
        sums = flipped
    return sum(likely for total, likely in sums.items() if total >= sum(changes))


def compared(fit: OwnFit) -> dict[str, dict[str, Share]]:
    """The measures before and after, for a table."""
    return {"before": all_measured(fit.before), "after": all_measured(fit.after)}


def write_calibration(folder: Path, fit: OwnFit) -> Path:
    """Put a calibration beside the files of its collection."""
    own = fit.calibration
    file = CalibrationFile(
        reader=own.reader,
        turns=fit.turns,
        topic=ScalingEntry(scale=own.topic.scale, shift=own.topic.shift),
        commitment=ScalingEntry(scale=own.commitment.scale, shift=own.commitment.shift),
    )
    path = folder / CALIBRATION_FILE
    path.write_text(file.model_dump_json(by_alias=True, indent=2) + "\n", encoding="utf-8")
    return path


def _read_in_folds(
    reader: LocalReader, rows: Sequence[ReaderRow], cases: Cases, report: Report | None
) -> list[ReadTurn]:
    by_case: dict[tuple[str, str], list[ReaderRow]] = {}
    for row in rows:
        by_case.setdefault(row.key, []).append(row)
    read: list[ReadTurn] = []
    for number, own in enumerate(by_case.values(), 1):
        for fold in range(FOLDS):
            held = [row for row in own if fold_of(row.turn) == fold]
            others = examples_of([row.turn for row in own if fold_of(row.turn) != fold])
            case = replace(with_examples(case_of(cases, own[0]), others), calibration=None)
            for start in range(0, len(held), AT_ONCE):
                part = held[start : start + AT_ONCE]
                opened = [row if row.turn.line else opened_by(case, row) for row in part]
                readings = reader.read(case, [(row.turn.line, row.turn.turn) for row in opened])
                read += [ReadTurn(row, fold, case, got) for row, got in zip(opened, readings, strict=True)]
        if report is not None:
            report("reading the labelled turns", number, len(by_case))
    return read


def fold_of(turn: LabelledTurn) -> int:
    """The fold of a turn: it stays when turns are added."""
    return int.from_bytes(hashlib.blake2b(turn.turn.encode(), digest_size=4, person=b"fold").digest(), "big") % FOLDS


def _fitted(reader: LocalReader, read: Iterable[ReadTurn]) -> ReaderCalibration:
    """The maps of what the reader names: what it is sure to be absent stays so."""
    topics: list[tuple[float, bool]] = []
    commitments: list[tuple[float, bool]] = []
    for read_turn in read:
        turn, sentences = read_turn.row.turn, read_turn.reading.sentences
        if turn.kind != "open":  # of an invitation any of several would be apt
            asked = _largest(candidate for sentence in sentences for candidate in sentence.topics)
            topics += [(likely, name in turn.asks) for name, likely in asked.items()]
        made = _largest(candidate for sentence in sentences for candidate in sentence.commitments)
        commitments += [(likely, name in turn.commits) for name, likely in made.items()]
    return ReaderCalibration(reader.digest, platt(topics), platt(commitments))


def _largest(candidates: Iterable[ReadCandidate]) -> Mapping[str, float]:
    largest: dict[str, float] = {}
    for candidate in candidates:
        largest[candidate.id] = max(largest.get(candidate.id, 0.0), candidate.confidence)
    return largest


def platt(observed: Sequence[tuple[float, bool]]) -> PlattScaling:
    """The map of log odds that makes labels likeliest, by Newton's method, with a normal prior at the identity.

    Args:
        observed: probability and label of each pair; without any, the identity.
    """
    if not observed:
        return PlattScaling()
    p = np.clip(np.array([likely for likely, _ in observed]), LOWEST, 1 - LOWEST)
    odds, labels = np.log(p / (1 - p)), np.array([label for _, label in observed], dtype=np.float64)
    inputs = np.stack([odds, np.ones_like(odds)], axis=1)
    prior, start = np.array([PRIOR_SCALE, PRIOR_SHIFT]), np.array([1.0, 0.0])
    weights = start.copy()
    for _ in range(STEPS):
        likely: Vector = 1 / (1 + np.exp(-np.clip(inputs @ weights, -40, 40)))
        slope = inputs.T @ (likely - labels) + prior * (weights - start)
        curvature = (inputs * (likely * (1 - likely))[:, None]).T @ inputs + np.diag(prior)
        step = np.linalg.solve(curvature, slope)
        weights -= step
        if np.abs(step).max() < 1e-6:
            break
    return PlattScaling(round(float(max(weights[0], 0.05)), 4), round(float(weights[1]), 4))
