"""Folders of a lab's own models and calibrations: in `labs/LAB`, in the folder of those that all labs share."""

from __future__ import annotations

from pathlib import Path

from reward_server.ids import is_lab_id


def of_lab(folder: Path, lab_id: str) -> Path | None:
    """The lab's part of a folder; None for what is no lab's id."""
    return folder / "labs" / lab_id if is_lab_id(lab_id) else None


def labs_in(folder: Path) -> dict[str, Path]:
    """The labs that have a part of a folder, by their ids, and where it lies."""
    return {path.name: path for path in sorted((folder / "labs").glob("*")) if path.is_dir() and is_lab_id(path.name)}
