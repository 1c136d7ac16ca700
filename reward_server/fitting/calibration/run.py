"""Fits a calibration, keeps it, and draws how reliable the rewards are before and after."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import numpy as np

from reward_server.errors import InvalidRequest
from reward_server.fitting.calibration.calibration_data import JudgedPairs, LabelledRows
from reward_server.fitting.calibration.calibration_fit import ReliabilityData, check_method, fit, judged
from reward_server.fitting.calibration.diagram import draw
from reward_server.fitting.calibration.read import CalibrationInput
from reward_server.fitting.calibration.spread import Rescaled, rescaled
from reward_server.reward_models.calibration import OWNER, Calibration, save

_OWNER = re.compile(OWNER)


@dataclass(frozen=True)
class SavedCalibration:
    """A calibration and its files."""

    calibration: Calibration
    path: Path
    diagram: Path
    rescaled: Mapping[str, Rescaled] = field(default_factory=dict)
    """Of maps that know no labels, by the name of the reward."""


def owner_of(rows: CalibrationInput, given: str | None, asked_as: str = "--for") -> str:
    """The scoring version or reward model that made the rewards; `asked_as` is what the caller calls `given`.

    Raises:
        InvalidRequest: nobody says, what is said is malformed, or the rows say otherwise.
    """
    if given is not None and _OWNER.fullmatch(given) is None:
        raise InvalidRequest(f"{asked_as} must be a scoring version (sv_…) or a reward model (rm_…)")
    if rows.owner is not None and given is not None and given.startswith("sv_") and given != rows.owner:
        raise InvalidRequest(f"The rows are of {rows.owner}, not of {given}.")
    owner = given or rows.owner
    if owner is None:
        raise InvalidRequest(f"The rows do not say which scoring version made them: give {asked_as} sv_… or rm_…")
    if _OWNER.fullmatch(owner) is None:
        raise InvalidRequest("The scoring version of the rows is malformed.")
    return owner


def calibrate(
    rows: CalibrationInput, method: str, owner: str, created: datetime, folder: Path, *, combine: bool = False
) -> SavedCalibration:
    """Fit, write `<id>.json` and `<id>.png` into the folder."""
    data = rows.data.ordered()
    if isinstance(data, JudgedPairs):
        _check_winners(data)
    calibration = fit(data, method, owner, created, combine=combine)
    path = save(calibration, folder)
    known: dict[str, ReliabilityData] = {}
    for name in data.names:
        seen = judged(data, check_method(method), name)
        if seen is not None:
            known[name] = seen
    diagram = path.with_suffix(".png")
    draw(diagram, calibration, known)
    if isinstance(data, LabelledRows) and calibration.is_scaling:
        return SavedCalibration(
            calibration,
            path,
            diagram,
            {name: rescaled(calibration, name, rewards) for name, rewards in data.rewards.items()},
        )
    return SavedCalibration(calibration, path, diagram)


def _check_winners(data: JudgedPairs) -> None:
    """A temperature could be fitted to winners on one side; how often the named side wins could not be told from it."""
    [first, *others] = np.unique(data.outcomes).tolist()
    if not others:
        winner = {1.0: "a", 0.0: "b"}.get(first, "a tie")
        turned = "" if winner == "a tie" else "; turn the sides of every other pair round, with its winner"
        raise InvalidRequest(f"All winners are {winner}: one class cannot be calibrated{turned}.")
