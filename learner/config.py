"""The configuration of a run: one TOML file, checked completely before anything starts.

Unknown sections and keys are refused with the nearest known name, wrong types with the place.
`resolve` gives the full configuration, defaults and presets included, which is printed at the start
and saved beside the checkpoints: what ran is never a guess.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import tomllib
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import learner.algorithms as table
from learner import ranges, tiny
from learner.algorithms import ALGORITHMS, Objective
from learner.reads import missing_need
from learner.sections import (
    AlgorithmSection,
    DataSection,
    EvaluationSection,
    GeneratorSection,
    LogSection,
    LoraSection,
    ModelSection,
    OptimSection,
    ParallelSection,
    RolloutSection,
    RunSection,
    ServerSection,
    WarmupSection,
)

if typing.TYPE_CHECKING:
    from learner.update import UpdateSettings


MOST_TURNS = 50
"""What the server allows at most; longer than any scenario is."""
UNSET = "none"
"""Written for a key that may have no value: TOML has no null, and a preset may have set it."""
GIVEN_RATE, GIVEN_ADAPTER_RATE, GIVEN_MAX_TOKENS = 1e-6, 1e-5, 256
"""Defaults with `model.path`: those of the sections fit a tiny model, and would spoil a real one."""


class ConfigError(ValueError):
    """The configuration cannot be used; the message says where and why."""


@dataclass(frozen=True)
class Config:
    """Everything about a run."""

    server: ServerSection = field(default_factory=ServerSection)
    model: ModelSection = field(default_factory=ModelSection)
    warmup: WarmupSection = field(default_factory=WarmupSection)
    rollout: RolloutSection = field(default_factory=RolloutSection)
    algorithm: AlgorithmSection = field(default_factory=AlgorithmSection)
    optim: OptimSection = field(default_factory=OptimSection)
    data: DataSection = field(default_factory=DataSection)
    lora: LoraSection = field(default_factory=LoraSection)
    generator: GeneratorSection = field(default_factory=GeneratorSection)
    parallel: ParallelSection = field(default_factory=ParallelSection)
    log: LogSection = field(default_factory=LogSection)
    evaluation: EvaluationSection = field(default_factory=EvaluationSection)
    run: RunSection = field(default_factory=RunSection)

    def objective(self) -> Objective:
        """The preset with its overrides."""
        name = self.algorithm.name
        if name not in ALGORITHMS:
            raise ConfigError(f"algorithm.name: {name!r} is {nearest(name, ALGORITHMS)}")
        overrides = _read_fields(Objective, self.algorithm.overrides, "algorithm.overrides")
        turns = 1 if self.rollout.single_turn else self.server.max_turns or MOST_TURNS
        longest = turns * self.model.max_tokens
        beside = {"credit": self.algorithm.credit, "gamma": self.algorithm.gamma}
        given = {name: value for name, value in beside.items() if value is not None}
        row = dataclasses.replace(ALGORITHMS[name], **{"max_tokens": longest, **given, **overrides})
        is_foreign = self.generator.kind == "vllm" or self.rollout.max_staleness > 0
        if is_foreign and row.anchor == "old" and "correction" not in overrides:
            # What another engine or older weights sampled is weighed by how likely the learner is to say it (TIS).
            # A ratio to the sampler itself (`dppo`) has that weight in it.
            row = dataclasses.replace(row, correction="token_truncate")
        return row

    def update_settings(self) -> UpdateSettings:
        """As the updater takes them."""
        from learner.update import UpdateSettings

        return UpdateSettings(
            objective=self.objective(),
            entropy=self.algorithm.entropy,
            turn_limit=self.model.max_tokens,
            dimensions=self.algorithm.dimensions,
            non_finite=self.optim.non_finite,
            max_mismatch_kl=self.optim.max_mismatch_kl,
            on_mismatch=self.optim.on_mismatch,
            clip_norm=self.optim.clip_norm,
            minibatches=self.optim.minibatches,
            micro_tokens=self.optim.micro_tokens,
        )

    @property
    def narrows_frozen(self) -> bool:
        """Whether frozen weights are kept in 16 bits: sharded ones (`parallel`) have to be of one type."""
        return bool(self.lora.rank) and self.model.precision == "bfloat16" and self.parallel.kind == "replicate"

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
    config = _fitted(Config(**built), content)
    _check(config)
    return config


def _fitted(config: Config, content: Mapping[str, Any]) -> Config:
    """The same with the defaults of a given model, where there is one and the content does not set them."""
    if config.model.path is None:
        return config
    model, optim = config.model, config.optim
    if "max_tokens" not in content["model"]:
        model = dataclasses.replace(model, max_tokens=GIVEN_MAX_TOKENS)
    if "learning_rate" not in content.get("optim", {}):
        rate = GIVEN_ADAPTER_RATE if config.lora.rank else GIVEN_RATE
        optim = dataclasses.replace(optim, learning_rate=rate)
    return dataclasses.replace(config, model=model, optim=optim)


def _apply(content: dict[str, Any], change: str) -> None:
    key, equals, value = change.partition("=")
    section, dot, name = key.strip().partition(".")
    if not equals or not dot:
        raise ConfigError(f"--set {change}: use section.key=value")
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value.strip()
    target = content.setdefault(section, {})
    *path, last = name.split(".")
    for step in path:
        target = target.setdefault(step, {}) if isinstance(target, dict) else None
    if not isinstance(target, dict):
        raise ConfigError(f"--set {change}: {key.strip().rpartition('.')[0]} has no keys")
    target[last] = parsed


def _read_fields(kind: type[Any], values: Mapping[str, Any], where: str) -> dict[str, Any]:
    names = {spec.name for spec in dataclasses.fields(kind)}
    hints = typing.get_type_hints(kind, vars(table) | vars(typing) | vars(tiny))
    out = {}
    for name, value in values.items():
        if name not in names:
            raise ConfigError(f"{where}.{name}: {nearest(name, names)}")
        out[name] = _fit(value, hints[name], f"{where}.{name}")
    return out


def _fit(value: Any, hint: Any, where: str) -> Any:
    is_union = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
    allowed = typing.get_args(hint) if is_union else (hint,)
    names = [name for option in allowed if typing.get_origin(option) is Literal for name in typing.get_args(option)]
    can_be_unset = types.NoneType in allowed
    if can_be_unset and value == UNSET and UNSET not in names:
        return None
    if names:
        if value not in names:
            raise ConfigError(f"{where}: must be one of {', '.join(map(repr, _with_unset(names, can_be_unset)))}")
        return value
    plain = tuple(typing.get_origin(option) or option for option in allowed)
    if isinstance(value, int) and not isinstance(value, bool) and float in plain and int not in plain:
        value = float(value)
    if type(value) not in plain:
        wanted = [option.__name__ for option in plain if option is not types.NoneType]
        told = " or ".join(_with_unset(wanted, can_be_unset, '"none"'))
        raise ConfigError(f"{where}: must be {told}, not {type(value).__name__}")
    return _fit_inside(value, allowed[0], where)


def _with_unset(names: Sequence[str], can_be_unset: bool, unset: str = UNSET) -> list[str]:
    return [*names, unset] if can_be_unset and unset not in names else list(names)


def _fit_inside(value: Any, hint: Any, where: str) -> Any:
    inner = typing.get_args(hint)
    if isinstance(value, list):
        return [_fit(each, inner[0], f"{where}[{place}]") for place, each in enumerate(value)]
    if isinstance(value, dict) and inner[1] is not Any:
        return {name: _fit(each, inner[1], f"{where}.{name}") for name, each in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{where}: must be a finite number")
    return value


def _check(config: Config) -> None:
    for place, allowed in ranges.SECTIONS.items():
        section, _, name = place.partition(".")
        _check_range(place, getattr(getattr(config, section), name), allowed)
    if config.generator.kind == "vllm" and (config.model.top_p < 1 or config.model.top_k):
        raise ConfigError(
            "model.top_p, model.top_k: a vLLM server does not say which tokens it left out, and the loss has to know;"
            " use generator.kind = 'hf', or leave them out"
        )
    if config.generator.kind == "vllm" and not config.generator.url:
        raise ConfigError("generator.url: set the address of the vLLM server")
    _check_model(config)
    _check_rollout(config)
    _check_algorithm(config)


def _check_range(place: str, value: float | None, allowed: ranges.Range) -> None:
    problem = None if value is None else allowed.problem(value)
    if problem is not None:
        raise ConfigError(f"{place}: {problem}")


def _check_rollout(config: Config) -> None:
    if config.rollout.max_staleness > 1 and config.generator.kind == "vllm":
        raise ConfigError("rollout.max_staleness: a vLLM server has one set of weights; use 1 or generator.kind = 'hf'")
    if config.optim.max_mismatch_kl and config.optim.on_mismatch == "skip" and config.parallel.kind == "deepspeed":
        raise ConfigError("optim.on_mismatch: DeepSpeed cannot drop a gradient; use 'stop', or parallel.kind = 'fsdp'")
    if config.rollout.prompts is not None and not config.rollout.single_turn:
        raise ConfigError("rollout.prompts: needs rollout.single_turn = true")


def _check_model(config: Config) -> None:
    if config.model.path is None and config.model.width % (2 * config.model.heads):
        raise ConfigError("model.width: must be an even multiple of model.heads")  # positions rotate pairs
    if config.model.compile and config.parallel.kind == "deepspeed":
        raise ConfigError("model.compile: was not made to work with DeepSpeed; use parallel.kind = 'replicate'")
    if config.lora.rank and not config.lora.targets:
        raise ConfigError("lora.targets: name at least one layer, or use ['all-linear']")


def _check_algorithm(config: Config) -> None:
    chosen = config.objective()
    if chosen.kind != ALGORITHMS[config.algorithm.name].kind:
        raise ConfigError("algorithm.overrides.kind: the kind of an algorithm cannot be changed")
    for name in config.algorithm.overrides:
        if name in ranges.OBJECTIVE:
            _check_range(f"algorithm.overrides.{name}", getattr(chosen, name), ranges.OBJECTIVE[name])
    _check_effects(config, chosen)
    if chosen.kind == "reward" and chosen.advantage == "none":
        raise ConfigError("algorithm.overrides.advantage: 'none' is for algorithms that learn from a file")
    if chosen.is_whole_sequence and chosen.advantage in table.TOKEN_ADVANTAGES:
        raise ConfigError(
            f"algorithm.overrides: advantage {chosen.advantage!r} has a value per token, but the ratio is one per"
            " sequence; use ratio 'token', or 'sequence_then_token' with gate 'clip'"
        )
    if chosen.kind != "reward" and config.data.file is None:
        raise ConfigError(f"data.file: {config.algorithm.name!r} learns from a file; set its path")
    if config.data.held_out_share == 1:
        raise ConfigError("data.held_out_share: must be below 1, so that rows are left to learn from")


def _check_effects(config: Config, chosen: Objective) -> None:
    """Refuse what the chosen row does not read, unless it asks for what happens anyway."""
    section, own = config.algorithm, ALGORITHMS[config.algorithm.name]
    given = {f"algorithm.overrides.{name}": name for name in section.overrides}
    if section.credit is not None:
        given.setdefault("algorithm.credit", "credit")
    for place, name in given.items():
        need = missing_need(name, chosen, section.overrides)
        if need is not None and getattr(chosen, name) != getattr(own, name):
            raise ConfigError(
                f"{place}: has no effect with {section.name!r}: it needs {need}. Set that, or leave it out"
            )
    if section.dimensions and chosen.advantage != "dimension_z_scores":
        raise ConfigError(
            f"algorithm.dimensions: have no effect with {section.name!r}: they need advantage = 'dimension_z_scores',"
            " as 'gdpo' has it. Set that, or leave them out"
        )


def nearest(name: str, known: typing.Iterable[str]) -> str:
    """What to say about a name that is not known."""
    known = list(known)
    close = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(sorted(known))}"
    return f"unknown; {hint}"
