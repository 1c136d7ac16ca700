"""The place of an interrupted training, and whether there is one; needs nothing that takes long to load."""

from __future__ import annotations

from pathlib import Path


def checkpoint_folder(out: Path) -> Path:
    """The folder in which an interrupted training of a model for this folder is kept until it is finished."""
    return out.with_name(out.name + ".training")


def is_interrupted(out: Path) -> bool:
    """True if an interrupted training of a model for this folder left something to go on with."""
    place = checkpoint_folder(out)
    return place.is_dir() and any(place.iterdir())
