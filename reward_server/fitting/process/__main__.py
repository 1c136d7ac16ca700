"""The process of an errand: reads its order, says how far it is, and answers, each in a line of JSON.

It ends at once when whoever started it is gone, which it notices by the end of its standard input. What libraries
print goes nowhere: standard output is for the answer.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
import time
import traceback
from typing import Any, BinaryIO

from reward_server.errors import LabsError, in_a_line

ERRANDS = {
    "train_reward_model": "reward_server.fitting.process.train_reward_model",
    "calibrate": "reward_server.fitting.process.calibrate",
    "measure_agreement": "reward_server.fitting.process.measure_agreement",
    "check_scenarios": "reward_server.exam.errand",
}
LOWER = 5
"""So much lower than the server's is its priority: requests come first."""
SPEAK_EVERY_S = 1.0
_FRAMES = 12


class ProgressReporter:
    """Tells how far an errand is, in parts of the whole that never fall, once a second at most."""

    def __init__(self, out: BinaryIO, parts: dict[str, tuple[float, float]]) -> None:
        """`parts`: by the beginning of a stage's name, from where to where it takes the whole."""
        self._out = out
        self._parts = parts
        self._reached = 0.0
        self._told: tuple[str, float] = ("", -SPEAK_EVERY_S)

    def __call__(self, stage: str, done: int, total: int) -> None:
        """So much of a stage is done."""
        low, high = next((part for name, part in self._parts.items() if stage.startswith(name)), (0.0, 0.0))
        self._reached = max(self._reached, low + (high - low) * done / max(1, total))
        before, at_s = self._told
        now = time.monotonic()
        if stage != before or now - at_s >= SPEAK_EVERY_S:
            self._told = (stage, now)
            tell(self._out, {"stage": stage, "progress": round(self._reached, 4)})


def tell(out: BinaryIO, event: dict[str, Any]) -> None:
    """One line."""
    out.write(json.dumps(event).encode() + b"\n")
    out.flush()


def main() -> None:
    """Do the errand that the argument names."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    order = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_the_other, daemon=True).start()
    os.nice(LOWER)
    try:
        errand = importlib.import_module(ERRANDS[sys.argv[1]])
        result = errand.do(order, ProgressReporter(out, errand.PARTS))
    except LabsError as error:
        tell(out, {"code": error.code, "message": in_a_line(error)})
    except Exception as error:  # noqa: BLE001 (the boundary of the process)
        # The message may quote a conversation, so only the kind is told, and where.
        at = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)[-_FRAMES:]]
        tell(out, {"failed": type(error).__name__, "at": at})
    else:
        tell(out, {"result": result})


def _end_with_the_other() -> None:
    while os.read(0, 65_536):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
