"""Starts the `labs` command so that Ctrl-C ends it without a traceback from its first moment on.

Importing the commands takes a second, in which there is nothing to tidy up: the process just ends, with a word where
the command has one for later interruptions, too. From then on an interruption is the command's own, which may have
something to finish or to say. `learner/__main__.py` does the same for
its command on its own: neither package may import the other.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

INTERRUPTED = 130
"""What shells give a command that ended on Ctrl-C."""


SAYS_SO = ("reward-model", "train")
"""The command whose user is told what an interruption leaves (`interruption`), however early it comes."""


def end_before_it_began(signal_: int, frame: FrameType | None) -> None:
    """End the process while it loads."""
    if tuple(sys.argv[1:3]) == SAYS_SO:
        os.write(2, b"labs: interrupted before it began; the same command starts again\n")
    end_at_once(signal_, frame)


def end_at_once(_signal: int, _frame: FrameType | None) -> None:
    """End the process where it stands, without a word."""
    os._exit(INTERRUPTED)


def hear(answer: Callable[[int, FrameType | None], None]) -> None:
    """Answer Ctrl-C so, unless whoever started this ignores it, as a shell script does for a background job."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, answer)


def start() -> None:
    """Load the command line and run it; the entry point of the package."""
    hear(end_before_it_began)
    if hasattr(signal, "pthread_sigmask"):
        # `deploy/bootstrap.py` holds Ctrl-C back until there is somebody to hear it.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    # Scoring has threads of its own, and its products are small: numpy's would wait for each other on every core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from reward_server.cli.main import main

    try:
        hear(signal.default_int_handler)
        main()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    finally:
        # Threads may still be at work on what nobody wants any more.
        hear(end_at_once)


if __name__ == "__main__":
    start()
