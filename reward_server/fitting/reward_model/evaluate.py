"""Measures a reward model on other data than it was trained on: the honest test of what it is good for."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from reward_server.errors import InvalidRequest
from reward_server.fitting.reward_model.lacks import without_intervals
from reward_server.fitting.reward_model.measure import MeasuredRows, ModelFigures, measure
from reward_server.fitting.reward_model.train import Report
from reward_server.fitting.reward_model.unseen import MIN_ROWS, figures_of_unseen, systems_of
from reward_server.reward_models import word_baseline
from reward_server.reward_models.artefact import Artefact
from reward_server.reward_models.baselines import Baselines
from reward_server.reward_models.dataset import Dataset, check_labels_differ
from reward_server.reward_models.feature_shelf import FeatureShelf
from reward_server.reward_models.fitness import UNSEEN
from reward_server.reward_models.heads import Featuriser
from reward_server.reward_models.known_rows import trained_rows
from reward_server.reward_models.model import UNCERTAINTY, model_of
from reward_server.reward_models.plain_features import PlainFeatures


def evaluate(
    artefact: Artefact,
    dataset: Dataset,
    featuriser: Featuriser,
    plain: PlainFeatures,
    *,
    shelf: FeatureShelf,
    report: Report,
) -> ModelFigures:
    """Figures of the model on all rows, beside the baselines that were fitted with it.

    Raises:
        InvalidRequest: no row has a label that the model knows, or all have the same.
    """
    if not dataset.preferred:
        check_labels_differ(dataset)
    if not dataset.preferred and not any(set(row.scores) & set(artefact.card.heads) for row in dataset.labelled):
        raise InvalidRequest(
            f"no row has a label that {artefact.id} can be measured by: {', '.join(artefact.card.heads)}"
        )
    everything = list(dataset.conversations())
    features = shelf.features(featuriser, everything, partial(report, "encoding"))
    described = shelf.features(plain, everything, partial(report, "baselines"))
    report("measuring", 0, 1)
    words = artefact.extras.get(word_baseline.FILE)
    baselines = Baselines.from_json(artefact.card.baselines, words, artefact.card.reads)
    measured = measure(model_of(artefact), MeasuredRows(dataset, features, described), baselines)
    unseen = figures_of_unseen(dataset, artefact.card.data.systems, artefact.heads, features)
    report("measuring", 1, 1)
    return replace(measured, metrics=measured.metrics | unseen)


def lacks(artefact: Artefact, dataset: Dataset) -> tuple[str, ...]:
    """The gaps of such an evaluation: the doubt of a model without one, intervals over too few groups."""
    doubt = () if UNCERTAINTY in artefact.card.files else (f"no uncertainty: {artefact.id} was trained without one",)
    return (*doubt, *without_intervals(dataset))


def systems_line(artefact: Artefact, dataset: Dataset) -> tuple[str, ...]:
    """The number of rows by systems that the model learned from, where rows name them."""
    known, rows = frozenset(artefact.card.data.systems), list(dataset.rows())
    named = sum(bool(systems_of(row)) for row in rows)
    if not named:
        return ()
    heard = sum(bool(systems_of(row) & known) for row in rows)
    if not heard:
        return (f"{named} of {len(rows)} rows name their system, and the model learned from none of these systems.",)
    return (
        f"{heard} of {len(rows)} rows are by systems that the model learned from ({', '.join(sorted(known))}). "
        f"`{UNSEEN}` are the other rows that name a system, shown if there are {MIN_ROWS} or more.",
    )


def overlap_line(artefact: Artefact, dataset: Dataset) -> str:
    """The number of these rows that the model was trained on, and what that means for the figures."""
    rows = len(list(dataset.rows()))
    known = trained_rows(artefact, dataset)
    if known is None and dataset.digest == artefact.card.data.sha256:
        known = rows
    if known is None:
        return (
            f"It is not known whether {artefact.id} was trained on these rows: it has no hashes of its training rows, "
            "or hashes of an older kind."
        )
    told = f"{known} of {rows} rows were trained on"
    return f"{told}: figures on them say little about other data." if known else f"{told}."
