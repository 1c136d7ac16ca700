"""Finds calibrations that the server of a data folder would refuse as things stand, by the server's own rules."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reward_server.reward_models.calibration import Calibration
    from reward_server.settings import Settings


def refused(calibrations: Iterable[Calibration], settings: Settings) -> Mapping[str, str]:
    """The reasons, by id; those that fit are missing. `LabsError` where no server would start."""
    from reward_server.errors import CalibrationMismatch
    from reward_server.evaluations.calibrated import Calibrator
    from reward_server.reward_models.calibration import CalibrationShelf
    from reward_server.reward_models.registry import Registry
    from reward_server.server.engine import present

    Registry(settings.reward_models).active_id()  # a damaged note of it says nothing of what fits
    now = asyncio.run(present(settings))
    calibrator = Calibrator(CalibrationShelf(settings.calibrations), now.lineage)
    reasons: dict[str, str] = {}
    for calibration in calibrations:
        try:
            calibrator.check_makers(calibration, now.scoring_version)
        except CalibrationMismatch as mismatch:
            reasons[calibration.id] = mismatch.message
    return reasons
