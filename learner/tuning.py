"""A search over settings: Optuna proposes, each trial is a run in its own folder, a journal makes it resumable."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from learner import config
from learner.config import Config, ConfigError
from learner.metrics import read_metrics

_RANGE = re.compile(r"(?P<low>[^,:]+?)\.\.(?P<high>[^,:]+)(?P<log>:log)?")


@dataclass(frozen=True)
class Dimension:
    """One setting that is searched."""

    key: str
    choices: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    whole: bool = False

    def suggest(self, trial: Any) -> str:
        """Its value in a trial, as `--set` takes it."""
        if self.choices:
            return f"{self.key}={trial.suggest_categorical(self.key, self.choices)}"
        if self.whole:
            return f"{self.key}={trial.suggest_int(self.key, int(self.low), int(self.high), log=self.log)}"
        return f"{self.key}={trial.suggest_float(self.key, self.low, self.high, log=self.log)!r}"


@dataclass(frozen=True)
class Best:
    """The best trial so far."""

    value: float
    changes: tuple[str, ...]


def read_dimension(text: str) -> Dimension:
    """`section.key=LOW..HIGH`, `...:log`, or `section.key=a,b,c`; raises ConfigError."""
    key, equals, wanted = text.partition("=")
    key, wanted = key.strip(), wanted.strip()
    if not equals or "." not in key or not wanted:
        raise ConfigError(f"--search {text}: write section.key=LOW..HIGH or section.key=a,b,c")
    found = _RANGE.fullmatch(wanted)
    if found is None:
        return Dimension(key, tuple(part.strip() for part in wanted.split(",")))
    try:
        low, high = float(found["low"]), float(found["high"])
    except ValueError:
        raise ConfigError(f"--search {text}: {found['low']} and {found['high']} must be numbers") from None
    if low >= high or (found["log"] and low <= 0):
        raise ConfigError(f"--search {text}: the range must rise, and with :log begin above 0")
    whole = all(part.lstrip("-").isdigit() for part in (found["low"], found["high"]))
    return Dimension(key, low=low, high=high, log=bool(found["log"]), whole=whole)


class Search:
    """Trials of one configuration."""

    def __init__(self, file: Path, changes: Sequence[str], search: Sequence[str], folder: Path, seed: int) -> None:
        self._file = file
        self._changes = list(changes)
        self._dimensions = [read_dimension(text) for text in search]
        self._folder = folder
        self._seed = seed
        for dimension in self._dimensions:
            # A key that does not exist is refused before the first run.
            example = dimension.choices[0] if dimension.choices else f"{dimension.low:g}"
            config.load(file, [*changes, f"{dimension.key}={example}"])

    def go(self, trials: int, play: Callable[[Config, Path], None], say: Callable[[str], None]) -> Best:
        """Play until there are so many finished trials; returns the best."""
        try:
            import optuna
            from optuna.storages.journal import JournalFileBackend
        except ImportError:
            raise ConfigError("tune needs a package that is not there; pip install optuna") from None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._folder.mkdir(parents=True, exist_ok=True)
        storage = optuna.storages.JournalStorage(JournalFileBackend(str(self._folder / "trials.log")))
        study = optuna.create_study(
            storage=storage,
            study_name="learner",
            direction="maximize",
            load_if_exists=True,
        )
        # Not the same proposals again when a search goes on.
        study.sampler = optuna.samplers.TPESampler(seed=self._seed + len(study.trials))
        complete = optuna.trial.TrialState.COMPLETE
        while len(study.get_trials(deepcopy=False, states=(complete,))) < trials:
            trial = study.ask()
            changes = [dimension.suggest(trial) for dimension in self._dimensions]
            say(f"trial {trial.number}: {' '.join(changes)}")
            folder = self._folder / f"trial-{trial.number:03d}"
            try:
                play(config.load(self._file, [*self._changes, *changes]), folder)
            except BaseException:
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
                raise
            trial.set_user_attr("changes", changes)
            study.tell(trial, _score(folder))
        return Best(study.best_value, tuple(study.best_trial.user_attrs["changes"]))


def _score(folder: Path) -> float:
    rewards = [
        record["reward/mean"]
        for record in read_metrics(folder / "metrics.jsonl")
        if record["kind"] == "eval" and "reward/mean" in record
    ]
    if not rewards:
        raise ConfigError(f"{folder}: the run was never evaluated by reward, so there is nothing to choose by")
    return float(max(rewards))
