"""Fits a calibration of a lab."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from reward_server.fitting.calibration.read import read
from reward_server.fitting.calibration.run import calibrate, owner_of
from reward_server.reward_models.summary import calibration_summary
from trainer_client.wire import CalibrationOptions

PARTS = {"reading": (0.0, 0.2), "fitting": (0.2, 1.0)}


def do(order: dict[str, Any], report: Callable[[str, int, int], None]) -> dict[str, Any]:
    """The order has `rows`, `calibrations` (where it goes), `created` and `options`."""
    options = CalibrationOptions.model_validate(order["options"])
    report("reading", 0, 1)
    rows = read(Path(order["rows"]), scale=options.scale)
    report("fitting", 0, 1)
    kept = calibrate(
        rows,
        options.method,
        owner_of(rows, options.belongs_to, asked_as="`belongs_to`"),
        datetime.fromisoformat(order["created"]),
        Path(order["calibrations"]),
        combine=options.combine,
    )
    shown = calibration_summary(kept.calibration)
    return {"calibration_id": shown.pop("id"), **shown, "left_out": rows.left_out}
