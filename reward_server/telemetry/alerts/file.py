"""Rules of the operator's own: a YAML file that changes the built-in thresholds and adds rules over any metric.

thresholds:
  slow_requests: {above: 5, level: error}
  reward_drift: off
rules:
  - name: disk_low
    level: critical
    summary: Less than 2 GB are free where the data lies.
    metric: labs_disk_free_bytes
    below: 2000000000
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, Self

import yaml
from prometheus_client import CollectorRegistry
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from reward_server.errors import ConfigurationError
from reward_server.telemetry.alerts.readings import LabelFilter, Readings
from reward_server.telemetry.alerts.rules import RULES, Level, Rule
from reward_server.telemetry.own_metrics import OWN

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Reading = Literal["level", "grown", "p50", "p95", "p99"]
Number = Annotated[float, Field(allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0.0, le=86_400.0)]
MOST_BYTES = 100_000


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Threshold(_Part):
    """The changes of a built-in rule."""

    above: Number | None = None
    lasting_s: Seconds | None = None
    level: Level | None = None


class OwnRule(_Part):
    """A rule over a metric."""

    name: Name
    level: Level = Level.WARNING
    summary: Annotated[str, StringConstraints(min_length=1, max_length=300)]
    metric: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z_:][a-zA-Z0-9_:]{0,127}$")]
    """As it stands on `/metrics`; of a histogram the name without `_bucket`."""
    labels: Mapping[str, str] = Field(default_factory=dict)
    read: Reading = "level"
    """The value of a gauge, what a counter grew by since the look before (15 s), or a percentile of a histogram."""
    above: Number | None = None
    below: Number | None = None
    lasting_s: Seconds = 0.0

    @model_validator(mode="after")
    def _one_limit(self) -> Self:
        if (self.above is None) == (self.below is None):
            raise ValueError("give above or below")
        if self.below is not None and self.read != "level":
            raise ValueError("below goes with read: level")
        return self

    def rule(self) -> Rule:
        """The rule as the board takes it."""
        return Rule(
            self.name,
            self.level,
            self.summary,
            float("inf") if self.above is None else self.above,
            self.lasting_s,
            partial(_read, self),
            self.below,
        )


class AlertFile(_Part):
    """The file."""

    thresholds: Mapping[str, Threshold | Literal[False]] = Field(default_factory=dict)
    rules: Sequence[OwnRule] = ()


def rules_of(path: Path, registry: CollectorRegistry) -> tuple[Rule, ...]:
    """The built-in rules as the file changes them, and its own.

    Raises:
        ConfigurationError: it cannot be read, or names what does not exist; one line says what, and where.
    """
    file = _read_file(path)
    known = {rule.name: rule for rule in RULES}
    for name in file.thresholds:
        if name not in known:
            raise _wrong(path, f"thresholds.{name}: there is no such alert; there are {', '.join(sorted(known))}")
    built_in = [_changed(rule, file.thresholds.get(rule.name)) for rule in RULES]
    own = [each.rule() for each in file.rules]
    taken = set(known)
    for each in file.rules:
        if each.name in taken:
            raise _wrong(path, f"rules: {each.name} is the name of another alert")
        taken.add(each.name)
        if each.metric not in _names(registry) and not each.metric.startswith(OWN):
            raise _wrong(path, f"rules: {each.name}: /metrics has no {each.metric}")
    return (*(rule for rule in built_in if rule is not None), *own)


def _changed(rule: Rule, wanted: Threshold | Literal[False] | None) -> Rule | None:
    if wanted is False:
        return None
    return rule if wanted is None else replace(rule, **wanted.model_dump(exclude_none=True))


def _read_file(path: Path) -> AlertFile:
    try:
        text = path.read_text(encoding="utf-8")
        if len(text) > MOST_BYTES:
            raise _wrong(path, f"is larger than {MOST_BYTES:,} bytes")
        return AlertFile.model_validate(yaml.safe_load(text) or {})
    except OSError as error:
        raise _wrong(path, f"cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise _wrong(path, " ".join(str(error).split())) from None
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, problem["loc"]))
        raise _wrong(path, f"{place}: {problem['msg'].removeprefix('Value error, ')}") from None


def _wrong(path: Path, message: str) -> ConfigurationError:
    return ConfigurationError(f"LABS_ALERTS: {path.name}: {message}")


def _names(registry: CollectorRegistry) -> set[str]:
    return set(_every_name(registry))


def _every_name(registry: CollectorRegistry) -> Iterator[str]:
    for family in registry.collect():
        yield family.name
        yield f"{family.name}_total"
        for sample in family.samples:
            yield sample.name


def _read(rule: OwnRule, seen: Readings) -> float:
    wanted: LabelFilter = lambda labels: rule.labels.items() <= labels.items()  # noqa: E731
    if rule.read == "level":
        return seen.lowest(rule.metric, wanted) if rule.below is not None else seen.level(rule.metric, wanted)
    if rule.read == "grown":
        return seen.grown(rule.metric, wanted)
    return seen.quantile(rule.metric, int(rule.read[1:]) / 100, wanted=wanted)
