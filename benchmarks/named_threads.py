"""`labs`, with the system told the names of its threads: Python 3.11 keeps them to itself.

Usage: python -m benchmarks.named_threads serve …
"""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from reward_server.cli.start import start


def run() -> None:
    """Patch, and run the command line."""
    known: Any = threading.Thread
    set_native_id = known._set_native_id

    def named(thread: Any) -> None:
        set_native_id(thread)
        with suppress(OSError):
            Path(f"/proc/self/task/{thread.native_id}/comm").write_text(thread.name)

    known._set_native_id = named
    start()


if __name__ == "__main__":
    run()
