"""Simple baselines of a reward model, fitted on its own training rows: what anybody could have had without it.

    mean             always the mean label
    length           a line through the words that the agent said
    cosine           through the likeness of its last message to what it answers
    persona words    through how many different words the other party said
    tf-idf           a line through the words that are read (`word_baseline`)
    system mean      the mean label of whoever wrote the reply, where rows name a `system`

Each line is the best straight one (least squares; for pairs the sign of the correlation), so a learned model that is no
better has learned nothing but that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reward_server.reward_models.conversation import Conversation, Reads
from reward_server.reward_models.dataset import OVERALL, Dataset, Labelled
from reward_server.reward_models.heads import Exact, Matrix
from reward_server.reward_models.plain_features import NAMES
from reward_server.reward_models.segments import by_answers
from reward_server.reward_models.word_baseline import WordLine

MEAN, WORDS, SYSTEM = "mean", "tf-idf", "system mean"


@dataclass(frozen=True)
class LinearBaseline:
    """`intercept + slope * feature[column]`."""

    intercept: float
    slope: float
    column: int

    def __call__(self, plain: Matrix) -> Exact:
        """Values, shape (n,)."""
        values: Exact = self.intercept + self.slope * plain[:, self.column].astype(np.float64)
        return values


@dataclass(frozen=True)
class Baselines:
    """Lines by name, a line through words, and the means of named systems."""

    lines: Mapping[str, LinearBaseline]
    words: WordLine | None = field(default=None, repr=False)
    systems: Mapping[str, float] = field(default_factory=dict)
    reads: Reads = "answers"

    @classmethod
    def fitted(cls, part: Dataset, plain: Mapping[str, Matrix], reads: Reads) -> Baselines:
        """On labelled rows where there are some, else on pairs; `plain` holds plain features by digest."""
        labelled = [row for row in part.labelled if OVERALL in row.scores]
        if labelled:
            return cls._of_labels(labelled, plain, reads)
        pairs = part.preferred
        better, worse = ([_read(side, reads) for side in sides] for sides in _sides(part))
        targets = np.array([0.5 if pair.tie else 1.0 for pair in pairs])
        rows = np.array([plain[p.chosen.digest] - plain[p.rejected.digest] for p in pairs], dtype=np.float64)
        signs = np.sign((2.0 * targets - 1.0) @ rows)
        lines = {name: LinearBaseline(0.0, float(signs[column]), column) for column, name in enumerate(NAMES)}
        won: dict[str, list[float]] = defaultdict(list)
        for pair, target in zip(pairs, targets, strict=True):
            for system, result in zip(pair.systems, (target, 1.0 - target), strict=True):
                won[system].append(float(result))
        return cls(lines, WordLine.of_pairs(better, worse, targets), _means(won), reads)

    @classmethod
    def _of_labels(cls, rows: Sequence[Labelled], plain: Mapping[str, Matrix], reads: Reads) -> Baselines:
        labels = np.array([row.scores[OVERALL] for row in rows], dtype=np.float64)
        described = np.stack([plain[row.conversation.digest] for row in rows])
        lines = {MEAN: LinearBaseline(float(labels.mean()), 0.0, 0)}
        lines |= {name: _least_squares(described, labels, column) for column, name in enumerate(NAMES)}
        by_system: dict[str, list[float]] = defaultdict(list)
        for row, label in zip(rows, labels, strict=True):
            by_system[row.system].append(float(label))
        words = WordLine.of_labels([_read(row.conversation, reads) for row in rows], labels)
        return cls(lines, words, _means(by_system), reads)

    def values(
        self, conversations: Sequence[Conversation], systems: Sequence[str], plain: Mapping[str, Matrix]
    ) -> dict[str, Exact]:
        """The numbers of each baseline for conversations, by its name, shape (n,)."""
        rows = np.stack([plain[each.digest] for each in conversations])
        found = {name: line(rows) for name, line in self.lines.items()}
        if self.words is not None:
            found[WORDS] = self.words([_read(each, self.reads) for each in conversations])
        if self.systems and any(systems):
            rest = float(np.mean(list(self.systems.values())))
            found[SYSTEM] = np.array([self.systems.get(system, rest) for system in systems])
        return found

    def to_json(self) -> dict[str, Any]:
        """For a card, without the line through words."""
        lines = {n: {"intercept": x.intercept, "slope": x.slope, "column": x.column} for n, x in self.lines.items()}
        return {"lines": lines, "systems": dict(self.systems)}

    @classmethod
    def from_json(cls, recorded: Mapping[str, Any], words: bytes | None = None, reads: Reads = "answers") -> Baselines:
        """The inverse of `to_json`; `words` are those of `WordLine.packed`."""
        lines = {
            name: LinearBaseline(float(line["intercept"]), float(line["slope"]), int(line["column"]))
            for name, line in recorded.get("lines", {}).items()
        }
        return cls(lines, WordLine.unpacked(words) if words else None, recorded.get("systems", {}), reads)


def _read(conversation: Conversation, reads: Reads) -> str:
    """The words by which an agent earns: those of the other party where it earns by answers, else what it said last."""
    if by_answers(conversation, reads):
        return " ".join(said.text for said in conversation.turns if said.party == "persona")
    return next((said.text for said in reversed(conversation.turns) if said.party == "agent"), "")


def _sides(part: Dataset) -> tuple[list[Conversation], list[Conversation]]:
    return [pair.chosen for pair in part.preferred], [pair.rejected for pair in part.preferred]


def _means(values: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Of the systems that have a name."""
    return {system: float(np.mean(found)) for system, found in sorted(values.items()) if system}


def _least_squares(plain: Matrix, labels: Exact, column: int) -> LinearBaseline:
    feature = plain[:, column].astype(np.float64)
    centred = feature - feature.mean()
    power = float(centred @ centred)
    slope = float(centred @ labels) / power if power > 1e-12 else 0.0
    return LinearBaseline(float(labels.mean()) - slope * float(feature.mean()), slope, column)
