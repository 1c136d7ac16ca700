"""The configuration of a run: one TOML, YAML or JSON file, checked completely before anything starts.

Sections and keys are pydantic models (`sections`): unknown ones are refused with the likely one, wrong types and
numbers out of range with their place, all at once. `resolved` gives the full configuration, defaults and presets
included, which is printed at the start and saved beside the checkpoints: what ran is never a guess.
"""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

import learner.algorithms as table
from learner import config_errors, profiles
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
    Section,
    ServerSection,
    WarmupSection,
)
from learner.suggestions import nearest

MOST_TURNS = 50
"""What the server allows at most; longer than any scenario is."""
GIVEN_RATE, GIVEN_ADAPTER_RATE, GIVEN_MAX_TOKENS = 1e-6, 1e-5, 256
"""Defaults with `model.path`: those of the sections fit a tiny model, and would spoil a real one."""


class ConfigError(ValueError):
    """The configuration cannot be used; the message says where and why."""


class _CoreLoader(yaml.SafeLoader):
    """YAML whose scalars are those of TOML and JSON: `1e-6` is a number, and `off` a word, as in YAML 1.2."""


_CoreLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if not tag.endswith((":bool", ":float"))]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_CoreLoader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"(true|false)$"), list("tf"))
_CoreLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"([-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan)$"),
    list("-+.0123456789"),
)


_FIELDS: dict[str, Any] = {
    name: (hint, None) for name, hint in typing.get_type_hints(Objective, include_extras=True).items()
}
_OVERRIDES = create_model("_OVERRIDES", __base__=Section, **_FIELDS)
"""The fields of an objective, none of which has to be there."""


class Config(BaseModel):
    """Everything about a run."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    server: ServerSection = Field(default_factory=ServerSection)
    model: ModelSection = Field(default_factory=ModelSection)
    warmup: WarmupSection = Field(default_factory=WarmupSection)
    rollout: RolloutSection = Field(default_factory=RolloutSection)
    algorithm: AlgorithmSection = Field(default_factory=AlgorithmSection)
    optim: OptimSection = Field(default_factory=OptimSection)
    data: DataSection = Field(default_factory=DataSection)
    lora: LoraSection = Field(default_factory=LoraSection)
    generator: GeneratorSection = Field(default_factory=GeneratorSection)
    parallel: ParallelSection = Field(default_factory=ParallelSection)
    log: LogSection = Field(default_factory=LogSection)
    evaluation: EvaluationSection = Field(default_factory=EvaluationSection)
    run: RunSection = Field(default_factory=RunSection)

    def objective(self) -> Objective:
        """The preset with its overrides."""
        name = self.algorithm.name
        if name not in ALGORITHMS:
            raise ConfigError(f"algorithm.name: {name!r} is {nearest(name, ALGORITHMS)}")
        overrides = _read_as(_OVERRIDES, self.algorithm.overrides, "algorithm.overrides").model_dump(exclude_unset=True)
        turns = 1 if self.rollout.single_turn else self.server.max_turns or MOST_TURNS
        longest = turns * self.model.max_tokens
        beside = {"credit": self.algorithm.credit, "gamma": self.algorithm.gamma}
        given = {name: value for name, value in beside.items() if value is not None}
        row = dataclasses.replace(ALGORITHMS[name], **{"max_tokens": longest, **given, **overrides})
        is_foreign = self.generator.kind != "hf" or self.rollout.max_staleness > 0
        if is_foreign and row.anchor == "old" and "correction" not in overrides:
            # What another engine or older weights sampled is weighed by how likely the learner is to say it (TIS).
            # A ratio to the sampler itself (`dppo`) has that weight in it.
            row = dataclasses.replace(row, correction="token_truncate")
        return row

    @property
    def narrows_frozen(self) -> bool:
        """True if frozen weights are kept in 16 bits: sharded ones (`parallel`) have to be of one type."""
        return bool(self.lora.rank) and self.model.precision == "bfloat16" and self.parallel.kind == "replicate"

    def resolved(self) -> dict[str, Any]:
        """All values, the preset's included."""
        plain = self.model_dump()
        plain["algorithm"]["objective"] = dataclasses.asdict(self.objective())
        return plain


def load(path: Path | None = None, changes: Sequence[str] = ()) -> Config:
    """Read a TOML, YAML or JSON file (None: defaults) and apply `section.key=value` changes, whose values are TOML."""
    content = {} if path is None else _content(path)
    for change in changes:
        _apply(content, change)
    return read(content)


def load_with_profile(path: Path, name: str, changes: Sequence[str] = ()) -> tuple[Config, list[str]]:
    """The same under a profile, and a line for each setting that the profile changed.

    Raises:
        ConfigError: as `load`, or there is no such profile.
    """
    try:
        chosen = profiles.profile(name)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    plain = load(path, changes)
    content = profiles.applied(_content(path), chosen, load(path))
    for change in changes:
        _apply(content, change)
    config = read(content)
    return config, profiles.told(chosen, plain, config)


def _content(path: Path) -> dict[str, Any]:
    """The content of a file, by its ending."""
    try:
        text = path.read_text()
        if path.suffix in (".yaml", ".yml"):
            found = yaml.load(text, _CoreLoader) or {}  # noqa: S506  # a safe loader
        elif path.suffix == ".json":
            found = json.loads(text)
        else:
            found = tomllib.loads(text)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: {' '.join(str(error).split())}") from None
    if not isinstance(found, dict):
        raise ConfigError(f"{path}: the file has to hold sections with keys, as `labs learner config demo` prints them")
    return found


def read(content: Mapping[str, Any]) -> Config:
    """Check and build a configuration."""
    config = _fitted(_read_as(Config, content), content)
    _check(config)
    return config


ModelT = TypeVar("ModelT", bound=BaseModel)


def _read_as(kind: type[ModelT], values: Mapping[str, Any], where: str = "") -> ModelT:
    try:
        return kind.model_validate(dict(values))
    except ValidationError as error:
        raise ConfigError(config_errors.told(error, kind, where, _places())) from None


def _places() -> dict[str, Sequence[str]]:
    """The keys of each section."""
    found = {name: list(field.annotation.model_fields) for name, field in Config.model_fields.items()}  # type: ignore[union-attr]
    return {**found, "algorithm.overrides": list(_OVERRIDES.model_fields)}


def _fitted(config: Config, content: Mapping[str, Any]) -> Config:
    """The same with the defaults of a given model, where there is one and the content does not set them."""
    if config.model.path is None:
        return config
    model, optim = config.model, config.optim
    if "max_tokens" not in content["model"]:
        model = model.model_copy(update={"max_tokens": GIVEN_MAX_TOKENS})
    if "learning_rate" not in content.get("optim", {}):
        rate = GIVEN_ADAPTER_RATE if config.lora.rank else GIVEN_RATE
        optim = optim.model_copy(update={"learning_rate": rate})
    return config.model_copy(update={"model": model, "optim": optim})


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


def _check(config: Config) -> None:
    if config.generator.kind != "hf" and (config.model.top_p < 1 or config.model.top_k):
        raise ConfigError(
            "model.top_p, model.top_k: vLLM does not say which tokens it left out, and the loss has to know;"
            " use generator.kind = 'hf', or leave them out"
        )
    if config.generator.kind == "vllm" and not config.generator.url:
        raise ConfigError("generator.url: set the address of the vLLM server")
    if config.generator.kind == "vllm_colocated" and config.lora.rank and config.model.path is None:
        raise ConfigError("lora: adapters for an engine in this process need model.path, which it loads, too")
    _check_model(config)
    _check_rollout(config)
    _check_algorithm(config)


def _check_rollout(config: Config) -> None:
    if config.rollout.max_staleness > 1 and config.generator.kind == "vllm":
        raise ConfigError("rollout.max_staleness: a vLLM server has one set of weights; use 1 or generator.kind = 'hf'")
    if config.rollout.max_staleness and config.generator.kind == "vllm_colocated":
        raise ConfigError(
            "rollout.max_staleness: an engine in this process sleeps while it learns; use 0, or generator.kind = 'vllm'"
        )
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
