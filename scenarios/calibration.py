"""The reader's calibration of a collection: `reader.json` beside its scenarios, written by `labs reader train`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from personas.case.calibration import PlattScaling, ReaderCalibration
from scenarios.yamlfile import load, relative_name

CALIBRATION_FILE = "reader.json"


class ScalingEntry(BaseModel):
    """One map of log odds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    scale: float = Field(gt=0, le=10)
    shift: float = Field(ge=-20, le=20)

    def scaling(self) -> PlattScaling:
        """As the reader takes it."""
        return PlattScaling(self.scale, self.shift)


class CalibrationFile(BaseModel):
    """`reader.json`."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    schema_: Literal["labs.reader/1"] = Field(alias="schema", default="labs.reader/1")
    reader: str = Field(pattern=r"^[0-9a-f]{12}$")
    """Digest of the reader that it was fitted for."""
    turns: int = Field(ge=1)
    """So many labelled turns it was fitted on."""
    topic: ScalingEntry
    commitment: ScalingEntry

    def calibration(self) -> ReaderCalibration:
        """As a case takes it."""
        return ReaderCalibration(self.reader, self.topic.scaling(), self.commitment.scaling())


def load_calibration(folder: Path) -> ReaderCalibration | None:
    """The calibration of a collection's folder; None if it has none.

    Raises:
        ScenarioFileError: the file is no such calibration; names file and line.
    """
    path = folder / CALIBRATION_FILE
    return load(path, CalibrationFile, relative_name(path))[0].calibration() if path.is_file() else None
