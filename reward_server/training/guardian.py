"""The process between a server and a learner: `python -m reward_server.training.guardian FOLDER ARGUMENT…`.

It holds the run's folder, starts `python -m learner ARGUMENT…`, and ends with its status. Each byte on its standard
input is one Ctrl-C for the learner. The end of its input is the end of whoever started it, `kill -9` included: then the
learner ends at once, with all that it started. It is the first of a process group of its own.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

BUSY = 75
"""Its status where another process holds the folder (EX_TEMPFAIL)."""
WAIT_S = 10.0
"""For a process that has just been killed to let go."""
LOOK_S = 0.1
LOWER = 5
"""So much lower than the server's is the learner's priority: requests come first."""


def main(folder: Path, arguments: list[str]) -> int:
    """The status of the learner; 128 and the number of the signal that ended it."""
    with (folder / "lock").open("wb") as lock, (folder / "learner.log").open("ab") as log:
        if not _took(lock.fileno()):
            return BUSY
        # The learner hears Ctrl-C unless it is started deaf, as a shell's background is.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.nice(LOWER)
        # It holds the folder, too: until both have ended, nobody else works there.
        learner = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "learner", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[lock.fileno()],
        )
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        threading.Thread(target=_obey, args=(learner,), daemon=True).start()
        status = learner.wait()
    return status if status >= 0 else 128 - status


def _took(lock: int) -> bool:
    until = time.monotonic() + WAIT_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                return False
            time.sleep(LOOK_S)
        else:
            return True


def _obey(learner: subprocess.Popen[bytes]) -> None:
    while os.read(0, 1):
        with suppress(ProcessLookupError):
            learner.send_signal(signal.SIGINT)
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
