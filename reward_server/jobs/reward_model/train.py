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
from pathlib import Path
from typing import Any

import numpy as np

from reward_server import __version__
from reward_server.errors import InvalidRequest
from reward_server.jobs.reward_model.measure import Measured, Rows, measure
from reward_server.jobs.reward_model.report import page, pictures
from reward_server.reward_models import artefact
from reward_server.reward_models.artefact import Card, DataCard
from reward_server.reward_models.baselines import Baselines
from reward_server.reward_models.checkpoint import Checkpoint
from reward_server.reward_models.dataset import Dataset, Split, split
from reward_server.reward_models.feature_shelf import FeatureShelf
from reward_server.reward_models.heads import Featuriser, Matrix
from reward_server.reward_models.matrices import Examples
from reward_server.reward_models.model import pack, with_uncertainty
from reward_server.reward_models.plain_features import PlainFeatures
from reward_server.reward_models.training import Fitted, Recipe, fit
from reward_server.scoring.version import engine_digest

Report = Callable[[str, int, int], None]
"""Hears of a stage, what of it is done, and all of it."""


@dataclass(frozen=True)
class Task:
    """What to train and where to put it."""

    out: Path
    encoder: str
    created: datetime
    source: str = "file"
    scale: tuple[float, float] = (0.0, 1.0)
    recipe: Recipe = field(default_factory=Recipe)
    held_out: float = 0.2
    resume: bool = False


@dataclass(frozen=True)
class Tools:
    """What turns conversations into numbers, with its memory on disk."""

    featuriser: Featuriser
    plain: PlainFeatures
    encoder_version: str
    shelf: FeatureShelf


@dataclass(frozen=True)
class Trained:
    """What came of it."""

    card: Card
    fitted: Fitted
    measured: Measured


def train(dataset: Dataset, task: Task, tools: Tools, report: Report) -> Trained:
    """One whole training.

    Raises:
        InvalidRequest: the data is too little or says nothing, or the folder is taken.
    """
    artefact.refuse_taken(task.out)
    parts = split(dataset, task.recipe.seed, task.held_out)
    checkpoint = _checkpoint(dataset, task, tools)
    features, plain = _features(dataset, tools, report)
    names, width = parts.train.heads, tools.featuriser.width
    first, middle = (Examples.of(part, features, names, width) for part in (parts.train, parts.validation))
    fitted = fit(
        names,
        first,
        middle,
        task.recipe,
        emphasis=tools.featuriser.emphasis,
        checkpoint=checkpoint,
        on_epoch=lambda done, total: report("training", done, total),
    )
    report("measuring", 0, 1)
    baselines = _baselines(parts.train, plain)
    model = with_uncertainty(fitted.heads, first, middle, fitted.l2)
    measured = measure(model, Rows(parts.held_out, features, plain), baselines, task.recipe.seed)
    about = _about(dataset, parts, task, tools, fitted=fitted, measured=measured, baselines=baselines)
    images = pictures(measured, fitted)
    report_page = page(f"Reward model of {task.created:%Y-%m-%d}", notes(about), measured, images)
    beside = {**images, artefact.REPORT: report_page}
    card = artefact.write(task.out, fitted.heads, about, task.created, extras=pack(model), beside=beside)
    checkpoint.remove()
    report("measuring", 1, 1)
    return Trained(card, fitted, measured)


def checkpoint_folder(out: Path) -> Path:
    """Where an interrupted training is kept until it is finished."""
    return out.with_name(out.name + ".training")


def _checkpoint(dataset: Dataset, task: Task, tools: Tools) -> Checkpoint:
    parts = [dataset.digest, tools.featuriser.version, task.held_out, asdict(task.recipe)]
    key = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    found = Checkpoint(checkpoint_folder(task.out), key)
    if found.exists() and not task.resume:
        raise InvalidRequest(
            f"{checkpoint_folder(task.out)} holds an interrupted training: use --resume to go on, or remove the folder"
        )
    return found


def _features(dataset: Dataset, tools: Tools, report: Report) -> tuple[Mapping[str, Matrix], Mapping[str, Matrix]]:
    everything = list(dataset.conversations())
    found = tools.shelf.features(tools.featuriser, everything, lambda done, total: report("encoding", done, total))
    plain = tools.shelf.features(tools.plain, everything)
    return found, plain


def _baselines(part: Dataset, plain: Mapping[str, Matrix]) -> Baselines:
    from reward_server.reward_models.dataset import OVERALL

    examples = Examples.of(part, plain, (OVERALL,), next(iter(plain.values())).shape[0])
    known = np.isfinite(examples.labels[:, 0])
    return Baselines.fitted(
        examples.features[known],
        examples.labels[known, 0].astype(np.float64),
        examples.chosen - examples.rejected,
        examples.targets.astype(np.float64),
    )


def _about(
    dataset: Dataset,
    parts: Split,
    task: Task,
    tools: Tools,
    *,
    fitted: Fitted,
    measured: Measured,
    baselines: Baselines,
) -> dict[str, Any]:
    """The fields of the card."""
    data = DataCard(
        sha256=dataset.digest,
        labelled=len(dataset.labelled),
        pairs=len(dataset.preferred),
        groups=len(dataset.groups),
        grouped_by=dataset.grouped_by,
        source=task.source,
        scale=task.scale,
        notes=dataset.notes,
    )
    recipe = asdict(replace(task.recipe, l2=(fitted.l2,))) | {"epoch": fitted.epoch, "held_out": task.held_out}
    sizes = {name: len(list(part.rows())) for name, part in _named(parts).items()}
    return {
        "data": data,
        "split": {**sizes, "duplicates_removed": parts.duplicates},
        "recipe": recipe,
        "encoder": task.encoder,
        "encoder_version": tools.encoder_version,
        "features_version": tools.featuriser.version,
        "metrics": measured.metrics,
        "baselines": {"lines": baselines.to_json(), "metrics": measured.baselines},
        "ceiling": measured.ceiling,
        "uncertainty": measured.uncertainty,
        "code_version": __version__,
        "engine": engine_digest(),
    }


def notes(about: Mapping[str, Any]) -> list[str]:
    """What a reader of the report has to know about data, split and training."""
    data: DataCard = about["data"]
    sizes, recipe = about["split"], about["recipe"]
    lines = [
        f"{data.labelled} labelled conversations and {data.pairs} preference pairs in {data.groups} groups, by "
        f"{data.grouped_by}; data {data.sha256[:12]}",
        f"Split by group (seed {recipe['seed']}): {sizes['train']} rows to train, {sizes['validation']} to choose "
        f"settings, {sizes['held_out']} held out; {sizes['duplicates_removed']} rows taken out because their "
        "conversation also stands in a later part",
        f"Penalty {recipe['l2'][0]:g}, weights of epoch {recipe['epoch']}, encoder {about['encoder_version']}",
    ]
    return lines + list(data.notes)


def _named(parts: Split) -> dict[str, Dataset]:
    return {"train": parts.train, "validation": parts.validation, "held_out": parts.held_out}
