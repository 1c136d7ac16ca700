"""`log_metric`: figures of a program of your own, in the metrics of the run beside the learner's."""

from __future__ import annotations

import math
import re
import threading

PREFIX = "own/"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,99}")
_lock = threading.Lock()
_logged: dict[str, list[float]] = {}


def log_metric(name: str, value: float) -> None:
    """Keep a value for the next record of the run, which has the mean of what was logged since the one before.

    For rewards, environments and callbacks; it is `own/NAME` in `metrics.jsonl`, trackers, the API and the console.

    Raises:
        ValueError: the name or the value cannot be written.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"a metric's name is letters, digits and _./-, at most 100; {name[:100]!r} is not")
    if not math.isfinite(value):
        raise ValueError(f"the value of {name} must be a finite number")
    with _lock:
        _logged.setdefault(name, []).append(float(value))


def take() -> dict[str, float]:
    """What was logged since the last time, by the name it has in the metrics."""
    with _lock:
        found = {f"{PREFIX}{name}": sum(values) / len(values) for name, values in _logged.items()}
        _logged.clear()
    return found
