"""Checks a model on style: its share of right orders where style agrees with merit, disagrees, or is exchanged.

Made of rows that were held out, and of open data where a folder is given; the sets are those of
`reward_models.style_sets`. A judge of content is above chance on all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reward_server.encoders.encoder import TextEncoder
from reward_server.fitting.reward_model.metrics import PAIR_STATISTICS, Resamples
from reward_server.reward_models.conversation import Reads
from reward_server.reward_models.dataset import Dataset, PreferredPair, groups_of
from reward_server.reward_models.feature_shelf import Describer
from reward_server.reward_models.fitness import MIN_STYLE_PAIRS
from reward_server.reward_models.heads import Exact
from reward_server.reward_models.model import RewardModel
from reward_server.reward_models.plain_features import NAMES
from reward_server.reward_models.style_sets import style_sets

OPEN_DATA = "open data: "
COSINE = NAMES.index("cosine")
_PAIRWISE = PAIR_STATISTICS["pairwise"]


@dataclass(frozen=True)
class StyleEncoders:
    """The encoders that describe conversations."""

    features: Describer
    plain: Describer
    encoder: TextEncoder
    reads: Reads = "answers"


def style_check(
    model: RewardModel, held_out: Dataset, reader: StyleEncoders, seed: int, open_data: Dataset | None = None
) -> dict[str, Any]:
    """By set: pairs, the share in the right order with its interval, and that of the cosine on the same pairs."""
    sets = dict(style_sets(held_out, reader.encoder, reader.reads))
    if open_data is not None:
        sets |= {OPEN_DATA + name: pairs for name, pairs in style_sets(open_data, reader.encoder, reader.reads).items()}
    return {name: _checked(model, pairs, reader, seed) for name, pairs in sets.items()}


def _checked(model: RewardModel, pairs: Sequence[PreferredPair], reader: StyleEncoders, seed: int) -> dict[str, Any]:
    resamples = Resamples.of(groups_of(pairs), seed)
    ones = np.ones(len(pairs))
    better, worse = [pair.chosen for pair in pairs], [pair.rejected for pair in pairs]
    chances = model.heads.chances(reader.features.features(better), reader.features.features(worse)) - 0.5
    cosine = (reader.plain.features(better) - reader.plain.features(worse))[:, COSINE].astype(np.float64)
    figures: dict[str, Any] = {"n": len(pairs)}
    margins: Mapping[str, Exact] = {"accuracy": chances, "cosine": cosine}
    for name, margin in margins.items():
        figure = resamples.figure(_PAIRWISE, margin, ones)
        figures |= {name: figure.to_json()} if figure is not None else {}
    return figures


def style_lines(checked: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The check in words, one line a set."""
    lines = []
    for name, figures in checked.items():
        own = figures["accuracy"]
        between = f" [{own['low']:.3f}, {own['high']:.3f}]" if "low" in own else ""
        few = "" if figures["n"] >= MIN_STYLE_PAIRS else f" (fewer than {MIN_STYLE_PAIRS} pairs decide nothing)"
        lines.append(
            f"Style check, {name}: {own['value']:.3f}{between} of {figures['n']} pairs in the right order, cosine "
            f"{figures['cosine']['value']:.3f}{few}"
        )
    return lines
