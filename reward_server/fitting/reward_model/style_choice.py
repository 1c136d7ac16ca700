"""Trains against style: pairs are balanced by it, and the reading of features is chosen that does without it.

A featuriser offers several readings (`Featuriser.readings`): all features, those without style and counts, meaning
alone. Heads are fitted on each (`selection`); kept is the one that puts most pairs into the right order on the
validation part, where pairs as they are and the two kinds of pairs whose style has changed places count alike, among
those that do well on pairs as they are, and no worse than chance on the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reward_server.encoders.encoder import TextEncoder
from reward_server.errors import InvalidRequest
from reward_server.reward_models.conversation import Reads
from reward_server.reward_models.dataset import Dataset, DatasetSplit, PreferredPair
from reward_server.reward_models.feature_rows import BLOCK_ROWS
from reward_server.reward_models.feature_shelf import Describer
from reward_server.reward_models.fitness import MIN_STYLE_PAIRS
from reward_server.reward_models.heads import Exact, Featuriser, Heads
from reward_server.reward_models.segments import by_answers
from reward_server.reward_models.style import balanced
from reward_server.reward_models.style_sets import NEIGHBOURS, RESTYLED, judged_pairs, style_sets

AUTO = "auto"
CHANCE = 0.5


def balanced_parts(parts: DatasetSplit) -> DatasetSplit:
    """Pairs to learn from and to choose settings by, weighted so that style says nothing of the label."""
    return replace(parts, train=_balanced(parts.train), validation=_balanced(parts.validation))


def _balanced(part: Dataset) -> Dataset:
    return replace(part, preferred=balanced(part.preferred))


def readings_to_try(
    featuriser: Featuriser, parts: DatasetSplit, wanted: str, reads: Reads
) -> dict[str, NDArray[np.bool_]]:
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
    by_answers_alone = all(by_answers(conversation, reads) for conversation in parts.train.conversations())
    first = next(iter(known))
    return {first: known[first]} if by_answers_alone else known


@dataclass(frozen=True)
class ValidationScores:
    """The scores of heads on the pairs of the validation part."""

    shares: tuple[float, ...]
    """In the right order, by set; the first is of pairs as people judged them. None where there is no pair."""
    sizes: tuple[int, ...]
    """How many pairs each set has."""
    error: float = 0.0
    """Standard error of the first."""

    @property
    def follows_style(self) -> bool:
        """True if it falls below chance on pairs whose style has changed places; a few pairs decide nothing."""
        exchanged = zip(self.shares, self.sizes, strict=True)
        return any(share < CHANCE and size >= MIN_STYLE_PAIRS for share, size in list(exchanged)[1:])

    @property
    def merit(self) -> float:
        """Each set counts alike; 0 without a set."""
        return sum(self.shares) / len(self.shares) if self.shares else 0.0


class Chooser:
    """Sets heads beside each other by the pairs of the validation part."""

    def __init__(self, validation: Dataset, encoder: TextEncoder, reads: Reads) -> None:
        exchanged = style_sets(validation, encoder, reads)
        sets: list[Sequence[PreferredPair]] = [judged_pairs(validation)]
        self._sets = [
            pairs for pairs in (*sets, *(exchanged.get(name, ()) for name in (RESTYLED, NEIGHBOURS))) if pairs
        ]

    def outcome(self, heads: Heads, featuriser: Describer) -> ValidationScores:
        """The scores of these heads."""
        right = []
        for pairs in self._sets:
            chances = np.concatenate([_chances(heads, featuriser, some) for some in _few_at_a_time(pairs)])
            right.append((np.sign(chances - 0.5) + 1.0) / 2.0)
        if not right:
            return ValidationScores((), ())
        error = float(right[0].std() / len(right[0]) ** 0.5)
        return ValidationScores(tuple(float(share.mean()) for share in right), tuple(map(len, right)), error)

    @staticmethod
    def best(outcomes: Mapping[str, ValidationScores]) -> str:
        """The largest merit among those that order judged pairs no worse than the best, within its standard error.

        Heads that follow style are left out where others do not: where people prefer longer outputs, they order judged
        pairs best, and are of no use. The rule of one standard error: Breiman et al., Classification and Regression
        Trees, 1984. Of equals the last.
        """
        names = [name for name, outcome in outcomes.items() if not outcome.follows_style] or list(outcomes)
        first = {name: (outcomes[name].shares or (0.0,))[0] for name in names}
        top = max(names, key=lambda name: first[name])
        near = [name for name in names if first[name] >= first[top] - outcomes[top].error]
        return max(reversed(near), key=lambda name: round(outcomes[name].merit, 4))


def _few_at_a_time(pairs: Sequence[PreferredPair]) -> Iterator[Sequence[PreferredPair]]:
    """Judged pairs may be many, and their features would not all go into memory."""
    for start in range(0, len(pairs), BLOCK_ROWS):
        yield pairs[start : start + BLOCK_ROWS]


def _chances(heads: Heads, featuriser: Describer, pairs: Sequence[PreferredPair]) -> Exact:
    better, worse = (featuriser.features(sides) for sides in _sides(pairs))
    return heads.chances(better, worse)


def _sides(pairs: Sequence[PreferredPair]) -> tuple[list[Any], list[Any]]:
    return [pair.chosen for pair in pairs], [pair.rejected for pair in pairs]


def notes_on_style(checked: Mapping[str, Any], dataset: Dataset) -> Iterator[str]:
    """A note where style could not be checked."""
    if not checked and any(not conversation.scenario for conversation in dataset.conversations()):
        yield "no style check: the held-out part has no two replies to one request whose labels clearly differ"
