"""The configuration of a run: one TOML file, checked completely before anything starts.

Unknown sections and keys are refused with the nearest known name, wrong types with the place.
`resolve` gives the full configuration, defaults and presets included, which is printed at the start
and saved beside the checkpoints: what ran is never a guess.
"""

from __future__ import annotations

import dataclasses
import difflib
import tomllib
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import learner.objectives as objectives_table
from learner.objectives import ALGORITHMS, Objective
from learner.update import UpdateSettings, check_trainable
from learner.warmup import WarmupSettings


class ConfigError(ValueError):
    """The configuration cannot be used; the message says where and why."""


@dataclass(frozen=True)
class ServerSection:
    """Where episodes are played."""

    url: str | None = None
    """Default: LABS_URL, else the local server."""
    collection: str = "clinical-intake"
    scenario: str = "tired-and-dizzy"
    max_turns: int | None = 12


@dataclass(frozen=True)
class ModelSection:
    """The policy."""

    path: str | None = None
    """A transformers folder or hub name. None: a tiny model, made and warmed up on the spot."""
    layers: int = 2
    width: int = 96
    heads: int = 4
    context: int = 2048
    temperature: float = 1.0
    max_tokens: int = 32
    """Longest turn."""
    device: str = "cpu"
    threads: int = 1
    """Threads of torch on the CPU: more than one costs a tiny model more than it gives."""


@dataclass(frozen=True)
class WarmupSection:
    """Scripted dialogues for a tiny model."""

    script: str = "tired-and-dizzy"
    steps: int = 200
    batch: int = 8
    turns: int = 12
    learning_rate: float = 4e-3

    def settings(self) -> WarmupSettings:
        """As the warm-up takes them."""
        return WarmupSettings(self.steps, self.batch, self.turns, self.learning_rate)


@dataclass(frozen=True)
class RolloutSection:
    """What is played for one update."""

    groups: int = 8
    group_size: int = 8
    waves: int = 2
    """Batches that take turns with the model while the others wait for the server."""
    connections: int = 64


@dataclass(frozen=True)
class AlgorithmSection:
    """A preset, and what of it is changed."""

    name: str = "grpo"
    credit: Literal["episode", "to_go"] = "episode"
    gamma: float = 1.0
    """With `to_go`: how much a gain counts one turn earlier."""
    entropy: float = 0.0
    overrides: dict[str, Any] = field(default_factory=dict)
    """Fields of the objective."""


@dataclass(frozen=True)
class OptimSection:
    """The optimiser."""

    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    clip_norm: float = 1.0
    minibatches: int = 1
    micro_tokens: int = 16_384


@dataclass(frozen=True)
class EvaluationSection:
    """Held-out seeds: never trained on."""

    every: int = 10
    episodes: int = 64
    samples: int = 2
    """Transcripts kept of each evaluation at the start and the end."""


@dataclass(frozen=True)
class RunSection:
    """The run as a whole."""

    updates: int = 60
    seed: int = 0
    checkpoint_every: int = 20
    keep: int = 2


@dataclass(frozen=True)
class Config:
    """Everything about a run."""

    server: ServerSection = field(default_factory=ServerSection)
    model: ModelSection = field(default_factory=ModelSection)
    warmup: WarmupSection = field(default_factory=WarmupSection)
    rollout: RolloutSection = field(default_factory=RolloutSection)
    algorithm: AlgorithmSection = field(default_factory=AlgorithmSection)
    optim: OptimSection = field(default_factory=OptimSection)
    evaluation: EvaluationSection = field(default_factory=EvaluationSection)
    run: RunSection = field(default_factory=RunSection)

    def objective(self) -> Objective:
        """The preset with its overrides."""
        name = self.algorithm.name
        if name not in ALGORITHMS:
            raise ConfigError(f"algorithm.name: {name!r} is {nearest(name, ALGORITHMS)}")
        overrides = _read_fields(Objective, self.algorithm.overrides, "algorithm.overrides")
        return dataclasses.replace(ALGORITHMS[name], **overrides)

    def update_settings(self) -> UpdateSettings:
        """As the updater takes them."""
        return UpdateSettings(
            objective=self.objective(),
            credit=self.algorithm.credit,
            gamma=self.algorithm.gamma,
            entropy=self.algorithm.entropy,
            clip_norm=self.optim.clip_norm,
            minibatches=self.optim.minibatches,
            micro_tokens=self.optim.micro_tokens,
        )

    def resolved(self) -> dict[str, Any]:
        """All values, the preset's included."""
        plain = dataclasses.asdict(self)
        plain["algorithm"]["objective"] = dataclasses.asdict(self.objective())
        return plain


def load(path: Path | None = None, changes: Sequence[str] = ()) -> Config:
    """Read a file (None: defaults) and apply `section.key=value` changes, whose values are TOML."""
    content: dict[str, Any] = {}
    if path is not None:
        try:
            content = tomllib.loads(path.read_text())
        except OSError as error:
            raise ConfigError(f"cannot read {path}: {error.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: {error}") from None
    for change in changes:
        _apply(content, change)
    return read(content)


def read(content: Mapping[str, Any]) -> Config:
    """Check and build a configuration."""
    sections = {spec.name: spec.default_factory for spec in dataclasses.fields(Config)}
    built: dict[str, Any] = {}
    for name, values in content.items():
        if name not in sections:
            raise ConfigError(f"section [{name}]: {nearest(name, sections)}")
        if not isinstance(values, dict):
            raise ConfigError(f"{name}: must be a section with keys")
        kind = typing.cast("type[Any]", sections[name])
        built[name] = kind(**_read_fields(kind, values, name))
    config = Config(**built)
    _check(config)
    return config


def _apply(content: dict[str, Any], change: str) -> None:
    key, equals, value = change.partition("=")
    section, dot, name = key.strip().partition(".")
    if not equals or not dot:
        raise ConfigError(f"--set {change}: write section.key=value")
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value.strip()
    target = content.setdefault(section, {})
    *path, last = name.split(".")
    for step in path:
        target = target.setdefault(step, {})
    target[last] = parsed


def _read_fields(kind: type[Any], values: Mapping[str, Any], where: str) -> dict[str, Any]:
    names = {spec.name for spec in dataclasses.fields(kind)}
    hints = typing.get_type_hints(kind, vars(objectives_table) | vars(typing))
    out = {}
    for name, value in values.items():
        if name not in names:
            raise ConfigError(f"{where}.{name}: {nearest(name, names)}")
        out[name] = _fit(value, hints[name], f"{where}.{name}")
    return out


def _fit(value: Any, hint: Any, where: str) -> Any:
    if typing.get_origin(hint) is Literal:
        if value not in typing.get_args(hint):
            raise ConfigError(f"{where}: must be one of {', '.join(map(repr, typing.get_args(hint)))}")
        return value
    allowed = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    plain = tuple(typing.get_origin(option) or option for option in allowed)
    if isinstance(value, int) and not isinstance(value, bool) and float in plain and int not in plain:
        return float(value)
    if type(value) not in plain:
        wanted = " or ".join(option.__name__ for option in plain if option is not types.NoneType)
        raise ConfigError(f"{where}: must be {wanted}, not {type(value).__name__}")
    return value


def _check(config: Config) -> None:
    positive = {
        "model.max_tokens": config.model.max_tokens,
        "model.temperature": config.model.temperature,
        "rollout.groups": config.rollout.groups,
        "optim.learning_rate": config.optim.learning_rate,
        "optim.minibatches": config.optim.minibatches,
        "evaluation.every": config.evaluation.every,
        "evaluation.episodes": config.evaluation.episodes,
        "run.updates": config.run.updates,
        "run.checkpoint_every": config.run.checkpoint_every,
        "run.keep": config.run.keep,
    }
    for name, value in positive.items():
        if value <= 0:
            raise ConfigError(f"{name}: must be above 0")
    if config.rollout.group_size < 2:
        raise ConfigError("rollout.group_size: a group of one has nothing to compare with; use at least 2")
    if config.model.path is None and config.model.width % config.model.heads:
        raise ConfigError("model.width: must be a multiple of model.heads")
    objective = config.objective()
    try:
        # The name means the whole of it: with another advantage it would be some other objective under its name.
        check_trainable(ALGORITHMS[config.algorithm.name])
        check_trainable(objective)
    except ValueError as error:
        raise ConfigError(f"algorithm.name: {config.algorithm.name!r} cannot be trained: {error}") from None


def nearest(name: str, known: typing.Iterable[str]) -> str:
    """What to say about a name that is not known."""
    known = list(known)
    close = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(sorted(known))}"
    return f"unknown; {hint}"
