"""What training does about style: pairs are balanced by it, and the reading of features is chosen that does without it.

A featuriser offers several readings (`Featuriser.readings`): all features, those without style and counts, meaning
alone. Heads are fitted on each; kept is the one that puts most pairs into the right order on the validation part, where
pairs as they are and the two kinds of pairs whose style has changed places count alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reward_server.errors import InvalidRequest
from reward_server.reward_models.conversation import Reads
from reward_server.reward_models.dataset import Dataset, Preferred, Split
from reward_server.reward_models.encoder import TextEncoder
from reward_server.reward_models.feature_shelf import Describer
from reward_server.reward_models.heads import Featuriser, Heads
from reward_server.reward_models.segments import by_answers
from reward_server.reward_models.style import balanced
from reward_server.reward_models.style_sets import NEIGHBOURS, RESTYLED, judged_pairs, style_sets

AUTO = "auto"


def balanced_parts(parts: Split) -> Split:
    """Pairs to learn from and to choose settings by, weighted so that style says nothing of the label."""
    return replace(parts, train=_balanced(parts.train), validation=_balanced(parts.validation))


def _balanced(part: Dataset) -> Dataset:
    return replace(part, preferred=balanced(part.preferred))


def readings_to_try(featuriser: Featuriser, parts: Split, wanted: str, reads: Reads) -> dict[str, NDArray[np.bool_]]:
    """The readings to fit heads on: all there are, or the one that is asked for.

    Where every conversation is read by the answers in it, no style of an agent is read, and the first is enough.

    Raises:
        InvalidRequest: there is no such reading.
    """
    known = dict(featuriser.readings)
    if wanted != AUTO and wanted not in known:
        raise InvalidRequest(f"these features have no reading {wanted}: use one of {', '.join((AUTO, *known))}")
    if wanted != AUTO:
        return {wanted: known[wanted]}
    by_answers_alone = all(by_answers(each, reads) for each in parts.train.conversations())
    first = next(iter(known))
    return {first: known[first]} if by_answers_alone else known


class Chooser:
    """Sets heads beside each other by the pairs of the validation part."""

    def __init__(self, validation: Dataset, encoder: TextEncoder, reads: Reads) -> None:
        exchanged = style_sets(validation, encoder, reads)
        sets: list[Sequence[Preferred]] = [judged_pairs(validation)]
        self._sets = [
            pairs for pairs in (*sets, *(exchanged.get(name, ()) for name in (RESTYLED, NEIGHBOURS))) if pairs
        ]

    def merit(self, heads: Heads, featuriser: Describer) -> float:
        """The share of pairs in the right order, each set counting alike; 0 without a set."""
        shares = []
        for pairs in self._sets:
            better, worse = (featuriser.features(sides) for sides in _sides(pairs))
            margins = heads.chances(better, worse) - 0.5
            shares.append(float(np.mean((np.sign(margins) + 1.0) / 2.0)))
        return sum(shares) / len(shares) if shares else 0.0


def _sides(pairs: Sequence[Preferred]) -> tuple[list[Any], list[Any]]:
    return [pair.chosen for pair in pairs], [pair.rejected for pair in pairs]


def notes_on_style(checked: Mapping[str, Any], dataset: Dataset) -> Iterator[str]:
    """A note where style could not be checked."""
    if not checked and any(not each.scenario for each in dataset.conversations()):
        yield "no style check: the held-out part has no two replies to the same request, or too alike labels"
