"""The folder of a run: whose it is, and where it goes on."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from learner.config import Config, ConfigError
from learner.metric_names import units

_BESIDE = ("server", "run", "log", "generator", "parallel")
"""Sections that do not make the policy, but for `_PLAYED` of `server`, and the seed of `run`."""
_PLAYED = ("collection", "scenario", "scenarios", "split", "max_turns", "system", "reward_config")
_HANDLING = ("non_finite", "max_mismatch_kl", "on_mismatch")
"""Keys of `optim` that say what to do in trouble: a run that ended for one goes on with another."""
_WRITTEN = (
    "checkpoints",
    "samples",
    "sync",
    "base",
    "tensorboard",
    "wandb",
    "metrics.jsonl",
    "units.json",
    "report.html",
    "curve.png",
    "config.json",
)
"""What a run leaves in its folder; the last one says that it is a run's."""
_SHORT = 40
"""A stored value of more characters is not shown when it differs."""


def where_it_goes_on(step: int, config: Config, folder: Path) -> str:
    """The message about a run that is there already."""
    if step < config.run.updates:
        return f"continuing from update {step} of {config.run.updates}"
    return (
        f"already finished: the run in {folder} has {step} updates and run.updates is {config.run.updates};"
        " raise it to continue the run"
    )


def remove_run(folder: Path) -> None:
    """Remove what a run has written into its folder, and nothing else. Raises ConfigError where it is not a run's."""
    path = folder / "config.json"
    if path.exists() and not _stored_shape(path):
        raise ConfigError(f"--overwrite: {folder} contains something else than a run; choose another folder with --out")
    for name in _WRITTEN:
        place = folder / name
        if place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)


def is_of_another(config: Config, folder: Path) -> bool:
    """True if the folder's run has another configuration."""
    path = folder / "config.json"
    shape = _shape(config, config.resolved())
    return path.exists() and _completed(_stored_shape(path), shape) != shape


def settle_config(config: Config, folder: Path, *, is_begun: bool) -> None:
    """Write down what was asked for; raises ConfigError where the folder holds a run of another configuration."""
    resolved = config.resolved()
    shape = _shape(config, resolved)
    path = folder / "config.json"
    # Where nothing was learned, nothing hangs on what was asked for: a setting may be mended.
    if is_begun and path.exists():
        stored = _completed(_stored_shape(path), shape)
        if stored != shape:
            changed = ", ".join(_differences(stored, shape)) or "settings of another version"
            raise ConfigError(
                f"{folder} contains a run with another configuration ({changed}); choose another folder with --out,"
                " or replace it with --overwrite"
            )
    folder.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps({"resolved": resolved, "shape": shape}, indent=1) + "\n")
    os.replace(temporary, path)
    (folder / "units.json").write_text(json.dumps(units(), indent=1) + "\n")


def _stored_shape(path: Path) -> dict[str, Any]:
    try:
        stored: dict[str, Any] = dict(json.loads(path.read_text()).get("shape", {}))
    except (ValueError, TypeError, AttributeError):
        raise ConfigError(f"{path} is damaged; restore it, or choose another folder with --out") from None
    return stored


def _completed(stored: Mapping[str, Any], shape: Mapping[str, Any]) -> dict[str, Any]:
    """The same, where a setting that there was not yet when the run began has its default."""
    defaults = Config().model_dump()
    return {
        section: {**{key: defaults[section][key] for key in shape[section] if key in defaults[section]}, **values}
        if isinstance(values, dict) and section in defaults and section in shape
        else values
        for section, values in stored.items()
    }


def _shape(config: Config, resolved: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a configuration that shapes the policy: not where the server listens, and not how far to go."""
    shape = {name: value for name, value in resolved.items() if name not in _BESIDE}
    shape["server"] = {name: value for name, value in resolved["server"].items() if name in _PLAYED}
    shape["optim"] = {name: value for name, value in resolved["optim"].items() if name not in _HANDLING}
    shape["run"] = {"seed": config.run.seed}
    if config.optim.schedule != "constant":
        shape["run"]["updates"] = config.run.updates
    return shape


def _differences(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    """`section.key` of what is not alike, with what it was where that is short."""
    for section in sorted(stored.keys() & wanted.keys()):
        before, after = stored[section], wanted[section]
        if not (isinstance(before, dict) and isinstance(after, dict)):
            continue
        for key in sorted(before.keys() | after.keys()):
            if before.get(key) != after.get(key):
                was = repr(before.get(key))
                yield f"{section}.{key}" + (f" was {was}" if len(was) <= _SHORT else "")
