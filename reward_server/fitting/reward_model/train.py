"""Trains a reward model: splits, encodes, fits the heads, measures them, and writes the artefact.

What is held out is looked at once, at the end. Nothing is written before everything has worked; what an interrupted
run leaves is a checkpoint beside the output folder.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from reward_server import __version__
from reward_server.errors import InvalidRequest
from reward_server.fitting.reward_model.doubt import sorts_errors
from reward_server.fitting.reward_model.emphasis import METHOD
from reward_server.fitting.reward_model.frozen_rows import ROWS, packed
from reward_server.fitting.reward_model.head_training import Fitted, Recipe
from reward_server.fitting.reward_model.interrupted import checkpoint_folder
from reward_server.fitting.reward_model.lacks import notes_on_lacks
from reward_server.fitting.reward_model.measure import MeasuredRows, ModelFigures, measure
from reward_server.fitting.reward_model.notes import notes
from reward_server.fitting.reward_model.report import page, pictures
from reward_server.fitting.reward_model.selection import Beside, SelectedFit, Selection, SelectionOptions
from reward_server.fitting.reward_model.style_check import StyleEncoders, style_check
from reward_server.fitting.reward_model.style_choice import AUTO, balanced_parts, notes_on_style
from reward_server.fitting.reward_model.unseen import (
    UnseenFigures,
    UnseenScores,
    asked_about,
    measured_without,
    named_systems,
)
from reward_server.reward_models import artefact, word_baseline
from reward_server.reward_models.artefact import Card, DataCard
from reward_server.reward_models.base_encoder import resolved
from reward_server.reward_models.baselines import Baselines
from reward_server.reward_models.checkpoint import TrainingCheckpoint
from reward_server.reward_models.conversation import Reads
from reward_server.reward_models.dataset import (
    Dataset,
    DatasetSplit,
    groups_of,
    notes_on_reading,
    notes_on_scenarios,
    split,
)
from reward_server.reward_models.feature_shelf import CachingDescriber, FeatureShelf
from reward_server.reward_models.heads import Featuriser, Matrix
from reward_server.reward_models.known_rows import pack_rows
from reward_server.reward_models.model import RewardModel, pack, with_uncertainty
from reward_server.reward_models.plain_features import PlainFeatures
from reward_server.scoring.version import engine_digest

Report = Callable[[str, int, int], None]
"""Hears of a stage, what of it is done, and all of it."""


@dataclass(frozen=True)
class TrainingTask:
    """The training to do, and where to put its result."""

    out: Path
    encoder: str
    created: datetime
    source: str = "file"
    asked: str = ""
    """What was asked of a store, which may have grown when an interrupted training goes on: its rows are kept, too."""
    scale: tuple[float, float] = (0.0, 1.0)
    recipe: Recipe = field(default_factory=Recipe)
    held_out: float = 0.2
    reads: Reads = "answers"
    """What an agent earns by in a scenario: the answers it got, or its own words, too."""
    resume: bool = False
    keep_uncertainty: bool = False
    """Whether to keep a doubt, too, that is not shown to sort the errors of the held-out rows."""
    features: str = AUTO
    """Which reading of the features heads are fitted on; `auto` tries all (`style_choice`)."""
    counterparts: Beside = "auto"
    """Whether heads are fitted on pairs without style, too (`reward_models.counterparts`); `auto` tries both."""
    relations: bool = True
    """Whether what joins a reply to its request is weighed beside the head (`reward_models.relations`)."""
    open_data: Dataset | None = field(default=None, repr=False)
    """Further rows to make style sets of; nothing is learned from them."""


@dataclass(frozen=True)
class FeatureTools:
    """The tools that turn conversations into numbers, with their memory on disk."""

    featuriser: Featuriser
    plain: PlainFeatures
    encoder_version: str
    shelf: FeatureShelf


@dataclass(frozen=True)
class Attempt:
    """Heads on one encoder, measured on the held-out part."""

    fitted: Fitted
    model: RewardModel
    measured: ModelFigures
    style: dict[str, Any]
    """What it makes of style (`style_check`)."""
    features: dict[str, Any]
    """Which reading of the features was kept, and what each that was tried came to."""
    encoder_version: str
    features_version: str
    left_out: dict[str, int]
    """How many systems rows name, and in how many parts they were left out in turn (`unseen`)."""
    dropped: dict[str, Any] | None = None
    """What an uncertainty that was not kept was worth on the held-out rows; None where none was dropped."""


@dataclass(frozen=True)
class TrainingResult:
    """The result of a training."""

    card: Card
    attempt: Attempt


def train(dataset: Dataset, task: TrainingTask, tools: FeatureTools, report: Report) -> TrainingResult:
    """One whole training.

    Raises:
        InvalidRequest: the data is too little or says nothing, or the folder is taken.
    """
    artefact.refuse_taken(task.out)
    parts = balanced_parts(split(dataset, task.recipe.seed, task.held_out))
    place, key = checkpoint_folder(task.out), _key(dataset, task, tools)
    _refuse_interrupted(place, key, resume=task.resume)
    plain = tools.shelf.features(tools.plain, list(dataset.conversations()), partial(report, "baselines"))
    baselines = Baselines.fitted(parts.train, plain, task.reads)
    lab = _HeadFitter(parts, task, tools, plain=plain, baselines=baselines, report=report)
    beside = (ROWS, partial(packed, dataset, task.asked)) if task.asked else None
    kept = lab.attempt(tools.featuriser, tools.encoder_version, TrainingCheckpoint(place, key, beside=beside))
    about = _about(dataset, parts, task, attempt=kept, baselines=baselines)
    card = _written(task, parts, kept, about, baselines)
    TrainingCheckpoint(place, key).remove()
    return TrainingResult(card, kept)


def _refuse_interrupted(place: Path, key: str, *, resume: bool) -> None:
    """Refuse to go on with what an interrupted training left, or to write over it, unasked."""
    if TrainingCheckpoint(place, key).exists() and not resume:
        raise InvalidRequest(f"{place} holds an interrupted training: use --resume to go on, or remove the folder")


def _written(
    task: TrainingTask, parts: DatasetSplit, kept: Attempt, about: dict[str, Any], baselines: Baselines
) -> Card:
    """The artefact with its report."""
    images = pictures(kept.measured, kept.fitted)
    words = {} if baselines.words is None else {word_baseline.FILE: baselines.words.packed()}
    text = page(f"Reward model of {task.created:%Y-%m-%d}", notes(about), kept.measured, images)
    return artefact.write(
        task.out,
        kept.fitted.heads,
        about,
        task.created,
        extras={**pack(kept.model), **pack_rows((parts.train, parts.validation)), **words},
        beside={**images, artefact.REPORT: text},
    )


class _HeadFitter:
    """Fits and measures heads on one split."""

    def __init__(
        self,
        parts: DatasetSplit,
        task: TrainingTask,
        tools: FeatureTools,
        *,
        plain: Mapping[str, Matrix],
        baselines: Baselines,
        report: Report,
    ) -> None:
        self._parts = parts
        self._task = task
        self._tools = tools
        self._plain = plain
        self._baselines = baselines
        self._report = report

    def attempt(self, featuriser: Featuriser, version: str, checkpoint: TrainingCheckpoint) -> Attempt:
        """Heads on the features of one encoder, on the reading of them that does best."""
        parts, task, report = self._parts, self._task, self._report
        everything = [
            conversation
            for part in (parts.train, parts.validation, parts.held_out)
            for conversation in part.conversations()
        ]
        features = self._tools.shelf.features(featuriser, everything, partial(report, "encoding"))
        # What was encoded is on the shelf; fitting needs the memory.
        featuriser.forget()
        self._tools.plain.forget()
        kept = self._selection.best(featuriser, features, checkpoint, "training")
        fitted, first, middle = kept.fitted, kept.train, kept.validation
        report("measuring", 0, 1)
        groups = tuple(groups_of(parts.train.labelled))
        model = with_uncertainty(fitted.heads, first, middle, fitted.l2, groups=groups)
        rows = MeasuredRows(parts.held_out, features, self._plain)
        measured = measure(model, rows, self._baselines, task.recipe.seed)
        dropped = None
        if not (model.posterior is None or task.keep_uncertainty or sorts_errors(measured.uncertainty)):
            dropped = measured.uncertainty
            model, measured = RewardModel(model.heads), replace(measured, uncertainty={}, risk=None)
        shelf, plain = self._tools.shelf, self._tools.plain
        reader = StyleEncoders(
            CachingDescriber(featuriser, shelf), CachingDescriber(plain, shelf), plain.encoder, task.reads
        )
        checked = style_check(model, parts.held_out, reader, task.recipe.seed, self._open_data)
        report("measuring", 1, 1)
        unseen = self._unseen(kept, featuriser, features, checkpoint)
        measured = replace(measured, metrics=measured.metrics | unseen.metrics)
        left_out = {"systems": unseen.systems, "system_parts": unseen.parts} if unseen.parts else {}
        return Attempt(fitted, model, measured, checked, kept.about, version, featuriser.version, left_out, dropped)

    def _unseen(
        self,
        kept: SelectedFit,
        featuriser: Featuriser,
        features: Mapping[str, Matrix],
        checkpoint: TrainingCheckpoint,
    ) -> UnseenFigures:
        """The scores of heads fitted in the kept way for systems that they did not learn from."""

        def asked(parts: DatasetSplit, number: int) -> UnseenScores:
            name = f"without systems, part {number + 1}"
            again = self._selecting(parts, kept.alone(self._wanted)).best(
                featuriser, features, checkpoint.inside(name.replace(", ", "-")), f"training {name}"
            )
            return asked_about(again.fitted.heads, parts.held_out, features)

        return measured_without(self._parts, self._task.recipe.seed, asked)

    @cached_property
    def _selection(self) -> Selection:
        return self._selecting(self._parts, self._wanted)

    @property
    def _wanted(self) -> SelectionOptions:
        task = self._task
        return SelectionOptions(task.features, task.counterparts, task.reads, task.recipe, task.relations)

    def _selecting(self, parts: DatasetSplit, wanted: SelectionOptions) -> Selection:
        return Selection(parts, wanted, self._tools.plain.encoder, self._tools.shelf, self._report)

    @cached_property
    def _open_data(self) -> Dataset | None:
        """Open data without what is learned from."""
        if self._task.open_data is None:
            return None
        parts = (self._parts.train, self._parts.validation)
        return self._task.open_data.without(
            frozenset(conversation.digest for part in parts for conversation in part.conversations())
        )


def _key(dataset: Dataset, task: TrainingTask, tools: FeatureTools) -> str:
    """Names the run that a checkpoint belongs to."""
    parts = [
        dataset.digest,
        tools.featuriser.version,
        METHOD,
        task.held_out,
        asdict(task.recipe),
        task.features,
        task.counterparts,
        task.relations,
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _about(
    dataset: Dataset,
    parts: DatasetSplit,
    task: TrainingTask,
    *,
    attempt: Attempt,
    baselines: Baselines,
) -> dict[str, Any]:
    """The fields of the card."""
    fitted, measured = attempt.fitted, attempt.measured
    data = DataCard(
        sha256=dataset.digest,
        labelled=len(dataset.labelled),
        pairs=len(dataset.preferred),
        groups=len(dataset.groups),
        grouped_by=dataset.grouped_by,
        systems=named_systems(parts.train, parts.validation),
        source=task.source,
        scale=task.scale,
        notes=(
            *dataset.notes,
            *notes_on_reading(dataset, task.reads),
            *notes_on_lacks(attempt.model, parts, measured.uncertainty, attempt.dropped),
            *notes_on_style(attempt.style, dataset),
            *notes_on_scenarios(dataset, task.reads),
        ),
    )
    recipe = asdict(replace(task.recipe, l2=(fitted.l2,))) | {"epoch": fitted.epoch, "held_out": task.held_out}
    recipe |= {"epochs_run": max(point.number for point in fitted.history if point.l2 == fitted.l2)}
    doubt = "bayesian" if attempt.model.posterior is not None else "none"
    recipe |= attempt.features
    recipe |= {"uncertainty": doubt}
    sizes = {name: len(list(part.rows())) for name, part in _named(parts).items()}
    return {
        "data": data,
        "split": {**sizes, "duplicates_removed": parts.duplicates, **attempt.left_out},
        "recipe": recipe,
        "encoder": resolved(task.encoder),
        "encoder_version": attempt.encoder_version,
        "features_version": attempt.features_version,
        "reads": task.reads,
        "metrics": measured.metrics,
        "baselines": baselines.to_json() | {"metrics": measured.baselines},
        "style": attempt.style,
        "ceiling": measured.ceiling,
        "uncertainty": measured.uncertainty,
        "code_version": __version__,
        "engine": engine_digest(),
    }


def _named(parts: DatasetSplit) -> dict[str, Dataset]:
    return {"train": parts.train, "validation": parts.validation, "held_out": parts.held_out}
