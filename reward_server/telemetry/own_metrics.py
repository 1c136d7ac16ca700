"""Metrics that somebody else's program names: those of judge plug-ins (`log_metric`), and figures of training runs.

Each name shows its latest value, and p50, p95 and p99 of the last thousand. Names are few and their number is bounded,
so that a program that makes up names fills no memory.
"""

from __future__ import annotations

import math
import re
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

OWN = "labs_own_"
MOST_NAMES = 100
MOST_RUNS = 16
KEPT = 1000
QUANTILES = (0.5, 0.95, 0.99)
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


@dataclass
class RecentValues:
    """The last values of one figure."""

    values: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT))
    count: int = 0

    def add(self, value: float) -> None:
        """One more."""
        self.values.append(value)
        self.count += 1

    def quantiles(self) -> Iterator[tuple[str, float]]:
        """Each quantile by its name, linear between values."""
        ordered = sorted(self.values)
        for share in QUANTILES:
            place = share * (len(ordered) - 1)
            low = math.floor(place)
            high = min(low + 1, len(ordered) - 1)
            yield f"{share:g}", ordered[low] + (place - low) * (ordered[high] - ordered[low])


class OwnMetrics(Collector):
    """What programs inside this process logged."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._figures: dict[str, RecentValues] = {}

    def log(self, name: str, value: float) -> None:
        """Add a value.

        Raises:
            ValueError: the name or the value cannot be shown, or there are too many names.
        """
        if not _NAME.fullmatch(name):
            raise ValueError(f"a metric's name is small letters, digits and _, at most 64; {name[:64]!r} is not")
        if not math.isfinite(value):
            raise ValueError(f"the value of {name} must be a finite number")
        with self._lock:
            if name not in self._figures and len(self._figures) >= MOST_NAMES:
                raise ValueError(f"there are {MOST_NAMES} metrics already: use fewer names")
            self._figures.setdefault(name, RecentValues()).add(float(value))

    def collect(self) -> Iterable[Metric]:
        """For the page of metrics."""
        with self._lock:
            for name, figure in self._figures.items():
                told = f"Logged by a plug-in: the latest {name}, and quantiles of the last {KEPT}."
                yield GaugeMetricFamily(f"{OWN}{name}", told, value=figure.values[-1])
                quantiles = GaugeMetricFamily(f"{OWN}{name}_quantile", told, labels=("quantile",))
                for share, value in figure.quantiles():
                    quantiles.add_metric((share,), value)
                yield quantiles
                yield CounterMetricFamily(f"{OWN}{name}_logged", f"How often {name} was logged.", value=figure.count)


class TrainingMetrics(Collector):
    """Figures of the training runs that go on in this process: step, latest values, quantiles."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[str, dict[str, RecentValues]] = {}
        self._steps: dict[str, int] = {}

    def note(self, run: str, kind: str, step: int, record: dict[str, object]) -> None:
        """Add a record of a run."""
        with self._lock:
            if run not in self._runs and len(self._runs) >= MOST_RUNS:
                return
            figures = self._runs.setdefault(run, {})
            self._steps[run] = max(step, self._steps.get(run, 0))
            for name, value in record.items():
                is_number = isinstance(value, int | float) and not isinstance(value, bool)
                if not is_number or name == "step" or not math.isfinite(value):  # type: ignore[arg-type]
                    continue
                shown = name if kind == "train" else f"{kind}/{name}"
                if shown in figures or len(figures) < MOST_NAMES:
                    figures.setdefault(shown, RecentValues()).add(float(value))  # type: ignore[arg-type]

    def forget(self, run: str) -> None:
        """The run is over, or goes on elsewhere."""
        with self._lock:
            self._runs.pop(run, None)
            self._steps.pop(run, None)

    def collect(self) -> Iterable[Metric]:
        """For the page of metrics."""
        step = GaugeMetricFamily("labs_training_step", "The update a run has reached.", labels=("run",))
        latest = GaugeMetricFamily(
            "labs_training_figure", "The latest value of a run's figure.", labels=("run", "figure")
        )
        spread = GaugeMetricFamily(
            "labs_training_figure_quantile",
            f"Quantiles of the last {KEPT} values of a run's figure.",
            labels=("run", "figure", "quantile"),
        )
        with self._lock:
            for run, reached in self._steps.items():
                step.add_metric((run,), reached)
            for run, figures in self._runs.items():
                for name, figure in figures.items():
                    latest.add_metric((run, name), figure.values[-1])
                    for share, value in figure.quantiles():
                        spread.add_metric((run, name, share), value)
        return (step, latest, spread)


own_metrics = OwnMetrics()
"""Of this process: plug-ins know no app."""


def log_metric(name: str, value: float) -> None:
    """Show a value of a plug-in on `/metrics` as `labs_own_NAME`, with p50, p95 and p99 of the last thousand.

    Raises:
        ValueError: the name or the value cannot be shown, or there are too many names.
    """
    own_metrics.log(name, value)
