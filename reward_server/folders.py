"""Makes folders that only the server's user may enter, with the folders above them that are missing.

`Path.mkdir(mode, parents=True)` gives its mode to the last one alone: a data folder that came into being as the parent
of a cache would be open to everybody.
"""

from __future__ import annotations

from pathlib import Path

MODE = 0o700


def make_private(folder: Path) -> None:
    """Make it and what is missing above it; folders that are there keep their mode."""
    if not folder.is_dir():
        if folder.parent != folder:
            make_private(folder.parent)
        folder.mkdir(MODE, exist_ok=True)
