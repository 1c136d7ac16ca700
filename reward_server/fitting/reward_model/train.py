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
from typing import Any, Literal

from reward_server import __version__
from reward_server.encoders.encoder import Precision, TextEncoder
from reward_server.errors import InvalidRequest
from reward_server.fitting.reward_model.doubt import sorts_errors
from reward_server.fitting.reward_model.emphasis import METHOD
from reward_server.fitting.reward_model.frozen_rows import ROWS, packed
from reward_server.fitting.reward_model.head_training import Fitted, Recipe
from reward_server.fitting.reward_model.interrupted import checkpoint_folder
from reward_server.fitting.reward_model.lacks import notes_on_lacks
from reward_server.fitting.reward_model.measure import Measured, Rows, measure
from reward_server.fitting.reward_model.notes import notes
from reward_server.fitting.reward_model.report import page, pictures
from reward_server.fitting.reward_model.selection import Beside, Kept, Selection, Wanted
from reward_server.fitting.reward_model.style_check import Reader, style_check
from reward_server.fitting.reward_model.style_choice import AUTO, balanced_parts, notes_on_style
from reward_server.fitting.reward_model.unseen import Asked, Found, asked_about, measured_without, named_systems
from reward_server.fitting.reward_model.verdict import Metric, default_metric, verdict
from reward_server.reward_models import artefact, word_baseline
from reward_server.reward_models.artefact import Card, DataCard
from reward_server.reward_models.bagging import MEMBERS, Bagging
from reward_server.reward_models.baselines import Baselines
from reward_server.reward_models.checkpoint import Checkpoint
from reward_server.reward_models.conversation import Reads
from reward_server.reward_models.dataset import (
    Dataset,
    Split,
    groups_of,
    notes_on_reading,
    notes_on_scenarios,
    split,
)
from reward_server.reward_models.feature_shelf import FeatureShelf, Shelved
from reward_server.reward_models.features import ConversationFeaturiser
from reward_server.reward_models.finetune import Tuning, fine_tune, resolved, tuned_encoder
from reward_server.reward_models.heads import Featuriser, Matrix
from reward_server.reward_models.known_rows import pack_rows
from reward_server.reward_models.model import RewardModel, pack, with_uncertainty
from reward_server.reward_models.plain_features import PlainFeatures
from reward_server.reward_models.tuned_weights import TunedWeights
from reward_server.scoring.version import engine_digest

Uncertainty = Literal["bayesian", "ensemble"]
Report = Callable[[str, int, int], None]
"""Hears of a stage, what of it is done, and all of it."""


@dataclass(frozen=True)
class Task:
    """What to train and where to put it."""

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
    uncertainty: Uncertainty = "bayesian"
    """Where the model's doubt comes from: a last-layer posterior, or heads on resampled dialogues."""
    keep_uncertainty: bool = False
    """Whether to keep a doubt, too, that is not shown to sort the errors of the held-out rows."""
    members: int = MEMBERS
    """Heads of an ensemble."""
    tuning: Tuning | None = None
    """How to fine-tune the encoder, too; None leaves it frozen."""
    features: str = AUTO
    """Which reading of the features heads are fitted on; `auto` tries all (`style_choice`)."""
    counterparts: Beside = "auto"
    """Whether heads are fitted on pairs without style, too (`reward_models.counterparts`); `auto` tries both."""
    relations: bool = True
    """Whether what joins a reply to its request is weighed beside the head (`reward_models.relations`)."""
    open_data: Dataset | None = field(default=None, repr=False)
    """Further rows to make style sets of; nothing is learned from them."""
    keep_by: Metric | None = None
    """The held-out figure by which a tuned encoder has to win; by default R², or the order of pairs without labels."""


@dataclass(frozen=True)
class Tools:
    """What turns conversations into numbers, with its memory on disk."""

    featuriser: Featuriser
    plain: PlainFeatures
    encoder_version: str
    shelf: FeatureShelf
    featuriser_on: Callable[[TextEncoder], Featuriser] = ConversationFeaturiser
    """Makes the same kind of featuriser on another encoder."""
    precision: Precision = "auto"
    """Of a tuned encoder, as in service."""


@dataclass(frozen=True)
class Attempt:
    """Heads on one encoder, measured on the held-out part."""

    fitted: Fitted
    model: RewardModel
    measured: Measured
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
    encoder: bytes | None = field(default=None, repr=False)
    """Tuned weights; None for the encoder of the setting."""


@dataclass(frozen=True)
class Trained:
    """What came of it."""

    card: Card
    attempt: Attempt


def train(dataset: Dataset, task: Task, tools: Tools, report: Report) -> Trained:
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
    lab = _Laboratory(parts, task, tools, plain=plain, baselines=baselines, report=report)
    beside = (ROWS, partial(packed, dataset, task.asked)) if task.asked else None
    kept, finetuning = lab.best_attempt(Checkpoint(place, key, beside=beside), place, key)
    about = _about(dataset, parts, task, attempt=kept, baselines=baselines) | {"finetuning": finetuning}
    card = _written(task, parts, kept, about, baselines)
    Checkpoint(place, key).remove()
    return Trained(card, kept)


def _refuse_interrupted(place: Path, key: str, *, resume: bool) -> None:
    """What an interrupted training left is neither gone on with nor written over unasked."""
    if Checkpoint(place, key).exists() and not resume:
        raise InvalidRequest(f"{place} holds an interrupted training: use --resume to go on, or remove the folder")


def _written(task: Task, parts: Split, kept: Attempt, about: dict[str, Any], baselines: Baselines) -> Card:
    """The artefact with its report."""
    images = pictures(kept.measured, kept.fitted)
    words = {} if baselines.words is None else {word_baseline.FILE: baselines.words.packed()}
    text = page(f"Reward model of {task.created:%Y-%m-%d}", notes(about), kept.measured, images)
    return artefact.write(
        task.out,
        kept.fitted.heads,
        about,
        task.created,
        encoder=kept.encoder,
        extras={**pack(kept.model), **pack_rows((parts.train, parts.validation)), **words},
        beside={**images, artefact.REPORT: text},
    )


class _Laboratory:
    """Fits and measures heads on one split, with one encoder or another."""

    def __init__(
        self,
        parts: Split,
        task: Task,
        tools: Tools,
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

    def best_attempt(self, checkpoint: Checkpoint, place: Path, key: str) -> tuple[Attempt, dict[str, Any]]:
        """Heads on the encoder of the setting, unless a tuned one wins; and what the card says of fine-tuning."""
        task, tools = self._task, self._tools
        frozen = self.attempt(tools.featuriser, tools.encoder_version, checkpoint, "training")
        if task.tuning is None:
            return frozen, {"tried": False}
        tuned, losses = self.tuned_attempt(task.tuning, place, key)
        metric = task.keep_by or default_metric(frozen.measured)
        wins, finetuning = verdict(frozen.measured, tuned.measured, self._parts.held_out, metric, task.recipe.seed)
        return tuned if wins else frozen, finetuning | losses

    def attempt(self, featuriser: Featuriser, version: str, checkpoint: Checkpoint, stage: str) -> Attempt:
        """Heads on the features of one encoder, on the reading of them that does best."""
        parts, task, report = self._parts, self._task, self._report
        everything = [c for part in (parts.train, parts.validation, parts.held_out) for c in part.conversations()]
        encoding = "encoding" if stage == "training" else "encoding anew"
        features = self._tools.shelf.features(featuriser, everything, partial(report, encoding))
        # What was encoded is on the shelf; fitting needs the memory.
        featuriser.forget()
        self._tools.plain.forget()
        kept = self._selection.best(featuriser, features, checkpoint, stage)
        fitted, first, middle = kept.fitted, kept.train, kept.validation
        report("measuring", 0, 1)
        groups = tuple(groups_of(parts.train.labelled))
        model = with_uncertainty(fitted.heads, first, middle, fitted.l2, self._bagging(), groups=groups)
        rows = Rows(parts.held_out, features, self._plain)
        measured = measure(model, rows, self._baselines, task.recipe.seed)
        dropped = None
        if not (model.posterior is None or task.keep_uncertainty or sorts_errors(measured.uncertainty)):
            dropped = measured.uncertainty
            model, measured = RewardModel(model.heads), replace(measured, uncertainty={}, risk=None)
        shelf, plain = self._tools.shelf, self._tools.plain
        reader = Reader(Shelved(featuriser, shelf), Shelved(plain, shelf), plain.encoder, task.reads)
        checked = style_check(model, parts.held_out, reader, task.recipe.seed, self._open_data)
        report("measuring", 1, 1)
        unseen = self._unseen(kept, featuriser, features, checkpoint, stage)
        measured = replace(measured, metrics=measured.metrics | unseen.metrics)
        left_out = {"systems": unseen.systems, "system_parts": unseen.parts} if unseen.parts else {}
        return Attempt(fitted, model, measured, checked, kept.about, version, featuriser.version, left_out, dropped)

    def _unseen(
        self,
        kept: Kept,
        featuriser: Featuriser,
        features: Mapping[str, Matrix],
        checkpoint: Checkpoint,
        stage: str,
    ) -> Found:
        """What heads fitted in the kept way say of systems that they did not learn from."""

        def asked(parts: Split, number: int) -> Asked:
            name = f"without systems, part {number + 1}"
            again = self._selecting(parts, kept.alone(self._wanted)).best(
                featuriser, features, checkpoint.inside(name.replace(", ", "-")), f"{stage} {name}"
            )
            return asked_about(again.fitted.heads, parts.held_out, features)

        return measured_without(self._parts, self._task.recipe.seed, asked)

    @cached_property
    def _selection(self) -> Selection:
        return self._selecting(self._parts, self._wanted)

    @property
    def _wanted(self) -> Wanted:
        task = self._task
        return Wanted(task.features, task.counterparts, task.reads, task.recipe, task.relations)

    def _selecting(self, parts: Split, wanted: Wanted) -> Selection:
        return Selection(parts, wanted, self._tools.plain.encoder, self._tools.shelf, self._report)

    @cached_property
    def _open_data(self) -> Dataset | None:
        """Open data without what is learned from."""
        if self._task.open_data is None:
            return None
        parts = (self._parts.train, self._parts.validation)
        return self._task.open_data.without(frozenset(each.digest for part in parts for each in part.conversations()))

    def _bagging(self) -> Bagging | None:
        part, task = self._parts.train, self._task
        if task.uncertainty == "bayesian":
            return None
        labelled, pairs = (tuple(groups_of(rows)) for rows in (part.labelled, part.preferred))
        return Bagging(labelled, pairs, task.members, task.recipe.seed)

    def tuned_attempt(self, tuning: Tuning, place: Path, key: str) -> tuple[Attempt, dict[str, float]]:
        """Heads on a tuned encoder; what the two phases reached on the validation part."""
        parts, kept = self._parts, TunedWeights(place / "tuned", key)
        tuned = kept.restore()
        if tuned is None:
            tuned = fine_tune(
                self._task.encoder,
                parts.train,
                parts.validation,
                tuning,
                lambda done, total: self._report("fine-tuning", done, total),
            )
            kept.keep(tuned)
        encoder = tuned_encoder(self._task.encoder, tuned.weights, self._tools.precision)
        featuriser = self._tools.featuriser_on(encoder)
        checkpoint = Checkpoint(place / "tuned-heads", key)
        attempt = self.attempt(featuriser, encoder.version, checkpoint, "training anew")
        losses = {"frozen_loss": round(tuned.frozen_loss, 6), "tuned_loss": round(tuned.tuned_loss, 6)}
        return replace(attempt, encoder=tuned.weights), {**losses, "epoch": tuned.epoch}


def _key(dataset: Dataset, task: Task, tools: Tools) -> str:
    """Names the run that a checkpoint belongs to."""
    tuning = None if task.tuning is None else asdict(task.tuning)
    parts = [
        dataset.digest,
        tools.featuriser.version,
        METHOD,
        task.held_out,
        asdict(task.recipe),
        tuning,
        task.features,
        task.counterparts,
        task.relations,
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _about(
    dataset: Dataset,
    parts: Split,
    task: Task,
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
    doubt = task.uncertainty if attempt.model.posterior is not None else "none"
    recipe |= attempt.features
    recipe |= {"uncertainty": doubt} | ({"members": task.members} if doubt == "ensemble" else {})
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


def _named(parts: Split) -> dict[str, Dataset]:
    return {"train": parts.train, "validation": parts.validation, "held_out": parts.held_out}
