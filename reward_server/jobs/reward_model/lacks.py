"""Says what is missing for want of data: a model's doubt, and the intervals of figures."""

from __future__ import annotations

from reward_server.reward_models.dataset import OVERALL, Dataset, Split
from reward_server.reward_models.metrics import MIN_RESAMPLED
from reward_server.reward_models.model import RewardModel
from reward_server.reward_models.uncertainty import MIN_ROWS
from scenarios.spelling import counted


def notes_on_lacks(model: RewardModel, parts: Split) -> tuple[str, ...]:
    """What a training could not give, why, and what would help; nothing where nothing is missing."""
    doubt = _thin_doubt(model, parts) if model.posterior is not None else (_no_doubt(model, parts),)
    return (*doubt, *(f"{note}: more groups, or a larger --held-out" for note in without_intervals(parts.held_out)))


def without_intervals(dataset: Dataset) -> tuple[str, ...]:
    """Which figures on these rows have no interval: too few groups make no resamples."""
    counts = {
        "labels": len({row.group for row in dataset.labelled if OVERALL in row.scores}),
        "preference pairs": len({pair.group for pair in dataset.preferred}),
    }
    return tuple(
        f"no intervals for {kind}: they are measured on {counted(count, 'group')}, at least {MIN_RESAMPLED} are needed"
        for kind, count in counts.items()
        if 0 < count < MIN_RESAMPLED
    )


def _no_doubt(model: RewardModel, parts: Split) -> str:
    least = f"at least {MIN_ROWS} are needed"
    if model.heads.link == "preference":
        return f"no uncertainty: {counted(len(parts.train.preferred), 'pair')} to learn it from, {least}: more pairs"
    learned, checked = (len(_labels(part)) for part in (parts.train, parts.validation))
    if learned >= MIN_ROWS and len(set(_labels(parts.train))) == 1:
        return "no uncertainty: all labels to learn from are alike: rows with other labels"
    if checked < MIN_ROWS:
        # A share of what is not held out, in whole groups: neither a larger nor a smaller --held-out surely helps.
        return f"no uncertainty: {counted(checked, 'row')} to check it on, {least}: more rows"
    return f"no uncertainty: {counted(learned, 'row')} with a label to learn it from, {least}: more rows"


def _thin_doubt(model: RewardModel, parts: Split) -> tuple[str, ...]:
    """How doubt came about that could not be checked on rows of its own."""
    checked = len(_labels(parts.validation))
    if model.heads.link == "preference" or checked >= MIN_ROWS:
        return ()
    return (
        f"uncertainty from training groups that were left out in turn: {checked} of {MIN_ROWS} rows to check it on; "
        "more rows make it surer",
    )


def _labels(part: Dataset) -> list[float]:
    return [row.scores[OVERALL] for row in part.labelled if OVERALL in row.scores]
