"""`python -m learner`: the `learner` command, which Ctrl-C ends without a traceback from its first moment on.

`reward_server/cli/start.py` does the same for its command on its own: neither package may import the other.
"""

import os
import signal
import sys


def start() -> None:
    """Load the command line and run it; while it loads, Ctrl-C just ends the process."""
    # Whoever started this may ignore it: a shell script does for what it sends to the background.
    heard = signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    if heard:
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    if hasattr(signal, "pthread_sigmask"):
        # `deploy/bootstrap.py` holds Ctrl-C back until there is somebody to hear it.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    from learner.cli import INTERRUPTED, main

    try:
        if heard:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        status = main()
    except KeyboardInterrupt:
        status = INTERRUPTED
    sys.exit(status)


if __name__ == "__main__":
    start()
