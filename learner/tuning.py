"""A search over settings: Optuna proposes, each trial is a run in its own folder, a journal makes it resumable."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from learner import config
from learner.config import Config, ConfigError
from learner.metrics import read_metrics

STUDY = "learner"
FOLDER = "trial-{:03d}"
_RANGE = re.compile(r"(?P<low>[^,:]+?)\.\.(?P<high>[^,:]+)(?P<log>:log)?")


@dataclass(frozen=True)
class SearchDimension:
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
class BestTrial:
    """The best trial so far."""

    value: float
    changes: tuple[str, ...]


def read_dimension(text: str) -> SearchDimension:
    """`section.key=LOW..HIGH`, `...:log`, or `section.key=a,b,c`; raises ConfigError."""
    key, equals, wanted = text.partition("=")
    key, wanted = key.strip(), wanted.strip()
    if not equals or "." not in key or not wanted:
        raise ConfigError(f"--search {text}: use section.key=LOW..HIGH or section.key=a,b,c")
    found = _RANGE.fullmatch(wanted)
    if found is None:
        return SearchDimension(key, tuple(part.strip() for part in wanted.split(",")))
    try:
        low, high = float(found["low"]), float(found["high"])
    except ValueError:
        raise ConfigError(f"--search {text}: {found['low']} and {found['high']} must be numbers") from None
    if low >= high or (found["log"] and low <= 0):
        raise ConfigError(f"--search {text}: LOW must be below HIGH, and above 0 with :log")
    whole = all(part.lstrip("-").isdigit() for part in (found["low"], found["high"]))
    return SearchDimension(key, low=low, high=high, log=bool(found["log"]), whole=whole)


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

    def go(self, trials: int, play: Callable[[Config, Path], None], say: Callable[[str], None]) -> BestTrial:
        """Play until there are so many finished trials, one after the other; returns the best.

        A trial that cannot be trained with its settings (a gradient that is not a number, too little memory) counts
        as one of them and is left behind. Raises ConfigError if all of them fail; an outage ends the search.
        """
        study = self._study()
        failed: list[str] = []
        while _finished(study) + len(failed) < trials:
            trial = study.ask()
            changes = _proposed(self._dimensions, trial)["changes"]
            say(f"trial {trial.number}: {' '.join(changes)}")
            folder = self._folder / FOLDER.format(trial.number)
            try:
                play(config.load(self._file, [*self._changes, *changes]), folder)
                reward = score(folder)
            except BaseException as error:
                study.tell(trial, state=_optuna().trial.TrialState.FAIL)
                if not isinstance(error, _faults_of_settings()):
                    raise
                failed.append(" ".join(str(error).split()))
                say(f"trial {trial.number} failed: {failed[-1]}")
                continue
            study.tell(trial, reward)
        if failed and not _finished(study):
            raise ConfigError(f"all {len(failed)} trials failed, the last one with: {failed[-1]}")
        return _best(study)

    def go_on_ray(self, trials: int, workers: int, url: str | None, say: Callable[[str], None]) -> BestTrial:
        """The same, so many at a time, handed out by Ray Tune."""
        from learner.tuning_ray import METRIC, SearchTask, play_trials

        study = self._study()
        missing = trials - _finished(study)
        if missing > 0:
            from ray.tune.search.optuna import OptunaSearch

            say(f"{missing} trials, {workers} at a time")
            chosen = config.load(self._file, self._changes)
            search = OptunaSearch(
                space=functools.partial(_proposed, self._dimensions),
                metric=METRIC,
                mode="max",
                sampler=study.sampler,
                storage=self._storage(),
                study_name=STUDY,
            )
            task = SearchTask(
                file=str(self._file.resolve()),
                folder=str(self._folder.resolve()),
                changes=self._changes,
                url=url or chosen.server.url,
                path=[str(Path(each).resolve()) for each in sys.path if each],
                score=score,
            )
            play_trials(task, search, missing, workers, float(chosen.model.device.startswith("cuda")))
        return _best(self._study())

    def _study(self) -> Any:
        optuna = _optuna()
        self._folder.mkdir(parents=True, exist_ok=True)
        study = optuna.create_study(
            storage=self._storage(), study_name=STUDY, direction="maximize", load_if_exists=True
        )
        # Not the same proposals again when a search goes on.
        study.sampler = optuna.samplers.TPESampler(seed=self._seed + len(study.trials))
        return study

    def _storage(self) -> Any:
        from optuna.storages.journal import JournalFileBackend

        return _optuna().storages.JournalStorage(JournalFileBackend(str(self._folder / "trials.log")))


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise ConfigError("tune needs a package that is not installed: pip install optuna") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _faults_of_settings() -> tuple[type[BaseException], ...]:
    """The errors that end a run because of its own settings, so that other settings are worth a try."""
    import torch

    from learner.update import MismatchError, NonFiniteError

    return (ConfigError, NonFiniteError, MismatchError, MemoryError, torch.OutOfMemoryError)


def _finished(study: Any) -> int:
    return len(study.get_trials(deepcopy=False, states=(_optuna().trial.TrialState.COMPLETE,)))


def _best(study: Any) -> BestTrial:
    return BestTrial(study.best_value, tuple(study.best_trial.user_attrs["changes"]))


def _proposed(dimensions: Sequence[SearchDimension], trial: Any) -> dict[str, Any]:
    """The settings that a trial changes, and the name of its folder."""
    changes = [dimension.suggest(trial) for dimension in dimensions]
    trial.set_user_attr("changes", changes)
    return {"changes": changes, "folder": FOLDER.format(trial.number)}


def score(folder: Path) -> float:
    """The best held-out reward of a run."""
    rewards = [
        record["reward/mean"]
        for record in read_metrics(folder / "metrics.jsonl")
        if record["kind"] == "eval" and "reward/mean" in record
    ]
    if not rewards:
        raise ConfigError(f"{folder}: the run has no evaluation with a reward, so trials cannot be compared")
    return float(max(rewards))
