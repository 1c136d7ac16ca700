"""Checks that a model is fit to serve: no worse than what anybody could have had without it, and no judge of style."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from reward_server.reward_models.artefact import Card
from reward_server.reward_models.baselines import MEAN
from reward_server.reward_models.dataset import OVERALL

PAIRS = "pairs"
UNSEEN, PAIRS_UNSEEN = "unseen systems", "pairs of unseen systems"
"""Held-out rows by systems that the heads asked about them did not learn from (`jobs.reward_model.unseen`)."""
MIN_STYLE_PAIRS = 20
"""A style set of fewer pairs decides nothing, nor do fewer rows of unseen systems."""
CHANCE = 0.5
_KNOWS_NOTHING = ((UNSEEN, "auc", "AUC"), (PAIRS_UNSEEN, "pairwise", "share of pairs in the right order"))
DECIDES = ((OVERALL, "r2", "R²"), (PAIRS, "pairwise", "share of pairs in the right order"))
"""The figures that a model is set against its baselines by."""


class BestBaseline(NamedTuple):
    """The best baseline beside the model, by one figure."""

    name: str
    theirs: float
    own: float
    title: str
    is_sure: bool
    """Whether the model's whole interval lies above the baseline."""


def rivals(metrics: Mapping[str, Any], baselines: Mapping[str, Any]) -> list[BestBaseline]:
    """For each figure that decides, the best baseline; none where there is nothing to compare."""
    found = []
    for head, figure, title in DECIDES:
        own = metrics.get(head, {}).get(figure)
        beside = {
            name: figures[figure]["value"]
            for name, figures in baselines.items()
            # An R² below 0 is worse than the mean, and is told in words of its own.
            if figure in figures and not (name == MEAN and figure == "r2")
        }
        if own is None or not beside:
            continue
        best = max(beside, key=lambda name: beside[name])
        sure = own.get("low", own["value"]) > beside[best]
        found.append(BestBaseline(best, beside[best], own["value"], title, sure))
    return found


def unfit(card: Card) -> str | None:
    """The reason why a model should not serve, in one line; None where nothing speaks against it."""
    for rival in rivals(card.metrics, card.baselines.get("metrics", {})):
        if round(rival.own, 3) < round(rival.theirs, 3):
            return (
                f"the simple baseline `{rival.name}` is better on its held-out rows ({rival.title} {rival.theirs:.3f}, "
                f"the model {rival.own:.3f})"
            )
    for name, figure, title in _KNOWS_NOTHING:
        value = card.metrics.get(name, {}).get(figure, {}).get("value", 1.0)
        if value < CHANCE and card.metrics[name]["n"] >= MIN_STYLE_PAIRS:
            told = f"{title} {value:.3f} on {name}, chance is {CHANCE}"
            return f"it recognises who wrote a reply, not how good it is: {told}"
    for name, found in card.style.items():
        value = found["accuracy"]["value"]
        if found["n"] >= MIN_STYLE_PAIRS and value < CHANCE:
            return (
                f"it judges style, not content: {value:.3f} of the {found['n']} pairs of its style check `{name}` are "
                f"in the right order, chance is {CHANCE}"
            )
    return None
