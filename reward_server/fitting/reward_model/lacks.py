"""Says what is missing for want of data: a model's doubt, and the intervals of figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reward_server.fitting.reward_model.doubt import not_shown, sorts_errors
from reward_server.fitting.reward_model.metrics import MIN_RESAMPLED
from reward_server.reward_models.dataset import OVERALL, Dataset, DatasetSplit
from reward_server.reward_models.model import RewardModel
from reward_server.reward_models.uncertainty import MIN_ROWS


def notes_on_lacks(
    model: RewardModel, parts: DatasetSplit, uncertainty: Mapping[str, Any], dropped: Mapping[str, Any] | None
) -> tuple[str, ...]:
    """The notes on what a training could not give, why, and what would help; none where nothing is missing.

    Args:
        uncertainty: what the model's uncertainty is worth on the held-out rows.
        dropped: the same of one that the model had and was not shown to help.
    """
    if dropped is not None:
        doubt: tuple[str, ...] = (f"no uncertainty: {not_shown(dropped)}; --keep-uncertainty keeps it",)
    elif model.posterior is None:
        doubt = (_no_doubt(model, parts),)
    else:
        doubt = (*_thin_doubt(model, parts), *_kept_unshown(uncertainty))
    return (*doubt, *(f"{note}; add groups, or use a larger --held-out" for note in without_intervals(parts.held_out)))


def without_intervals(dataset: Dataset) -> tuple[str, ...]:
    """The figures on these rows that have no interval: too few groups make no resamples."""
    counts = {
        "labels": len({row.group for row in dataset.labelled if OVERALL in row.scores}),
        "preference pairs": len({pair.group for pair in dataset.preferred}),
    }
    return tuple(
        f"no intervals for {kind}: they need {MIN_RESAMPLED} groups to be measured on and have {count}"
        for kind, count in counts.items()
        if 0 < count < MIN_RESAMPLED
    )


def _no_doubt(model: RewardModel, parts: DatasetSplit) -> str:
    if model.heads.link == "preference":
        pairs = len(parts.train.preferred)
        return f"no uncertainty: it needs {MIN_ROWS} pairs to be learned from and has {pairs}; add pairs"
    learned, checked = (len(_labels(part)) for part in (parts.train, parts.validation))
    if learned >= MIN_ROWS and len(set(_labels(parts.train))) == 1:
        return "no uncertainty: all labels to learn from are equal; add rows with other labels"
    if checked < MIN_ROWS:
        # A share of what is not held out, in whole groups: neither a larger nor a smaller --held-out surely helps.
        return f"no uncertainty: it needs {MIN_ROWS} labelled rows to be checked on and has {checked}; add rows"
    return f"no uncertainty: it needs {MIN_ROWS} labelled rows to be learned from and has {learned}; add rows"


def _kept_unshown(uncertainty: Mapping[str, Any]) -> tuple[str, ...]:
    """That an operator wanted an uncertainty that the training would have dropped."""
    if sorts_errors(uncertainty):
        return ()
    return (f"the uncertainty was kept on request, but {not_shown(uncertainty)}",)


def _thin_doubt(model: RewardModel, parts: DatasetSplit) -> tuple[str, ...]:
    """The making of doubt that could not be checked on rows of its own."""
    checked = len(_labels(parts.validation))
    if model.heads.link == "preference" or checked >= MIN_ROWS:
        return ()
    return (
        "the uncertainty was estimated on training groups left out in turn: it needs "
        f"{MIN_ROWS} labelled rows to be checked on and has {checked}; more rows make it more reliable",
    )


def _labels(part: Dataset) -> list[float]:
    return [row.scores[OVERALL] for row in part.labelled if OVERALL in row.scores]
