"""`python -m learner`: the `learner` command, which Ctrl-C ends without a traceback from its first moment on."""

import os
import signal
import sys


def start() -> None:
    """Load the command line and run it; while it loads, Ctrl-C just ends the process."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    # `deploy/bootstrap.py` holds Ctrl-C back until there is somebody to hear it.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    from learner.cli import INTERRUPTED, main

    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        status = main()
    except KeyboardInterrupt:
        status = INTERRUPTED
    sys.exit(status)


if __name__ == "__main__":
    start()
