"""One learner in a folder: two would write over each other's checkpoints and metrics.

The system lets go of the lock when its process ends, however it does. On a file system without locks there is none.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOCK = ".lock"


class FolderBusyError(ValueError):
    """Another learner is in the folder."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Within: no other learner uses this folder, which is made if need be; raises FolderBusyError."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            who = f"another learner (pid {file.read().strip()})"
            raise FolderBusyError(f"{who} is using {folder}; wait for its end, or choose another --out") from None
        except OSError:  # such as some network file systems
            yield
            return
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
