"""Do judges read what is said, or how it is laid out? Ways to read a reply, beside each other where style is exchanged.

Usage: python -m benchmarks.quality.styles --data DIR [--cache DIR] [--only llmbar,mrbench,hh] [--most N] [--write]

Five folds by dialogue. Heads are fitted on four of them and asked about pairs of the fifth as people judged them, about
those in which style agrees or disagrees with people, and about pairs whose style has changed places
(`reward_models.style_sets`). Readings of features are the product's (`features.readings`), pairs are balanced as in the
product, and each head is fitted with and without counterparts (`reward_models.counterparts`). They are least-squares
heads with a penalty chosen inside the training folds: they rank ways of reading, and are not the product's training.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from benchmarks.quality import data
from benchmarks.quality.data import Pair
from benchmarks.quality.figures import Floats, Indices, fold_of, folds_of, share, wins
from benchmarks.quality.vectors import KeptVectors
from benchmarks.report import Table, environment, write
from reward_server.encoders.loading import load_fast_encoder
from reward_server.reward_models.conversation import Conversation
from reward_server.reward_models.counterparts import counterparts
from reward_server.reward_models.dataset import Dataset, PreferredPair
from reward_server.reward_models.features import ConversationFeaturiser
from reward_server.reward_models.heads import Matrix
from reward_server.reward_models.style import balanced, reply_of
from reward_server.reward_models.style_sets import AGREES, DISAGREES, NEIGHBOURS, RESTYLED, style_sets
from reward_server.reward_models.wordings import COSINE_TO_LATEST
from reward_server.settings import load_settings

SETS = {"llmbar": "llmbar", "mrbench": "mrbench", "hh": "hh_rlhf_harmless"}
NATURAL = "as judged"
COLUMNS = (NATURAL, AGREES, DISAGREES, RESTYLED, NEIGHBOURS)
PENALTIES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
INNER = 3
MAXSIM = (13, 14)
"""Where late interaction over sentences stands among the numbers of a reply, in both directions."""
RELATIONS = (COSINE_TO_LATEST, *MAXSIM, 16, 11, 12)
Found = dict[str, dict[str, list[tuple[float, str]]]]


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the public sets")
    parser.add_argument("--cache", type=Path, help="folder where sentence vectors are kept between runs")
    parser.add_argument("--only", default=",".join(SETS), help=f"some of {','.join(SETS)}")
    parser.add_argument("--most", type=int, default=1_000_000, help="pairs of a set at most")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/styles.md")
    given = parser.parse_args(arguments)
    encoder = KeptVectors(load_fast_encoder(load_settings().encoder, "fp32"), given.cache, threads=1)
    featuriser = ConversationFeaturiser(encoder, remembered=200_000)
    command = "python -m benchmarks.quality.styles --data DIR --write"
    parts = [f"Command: `{command}`." if given.most >= 1_000_000 else f"Command: `{command} --most {given.most}`."]
    for name in given.only.split(","):
        parts.append(
            table(name, Bench(featuriser, encoder, some_of(pairs_of(name, given.data / SETS[name]), given.most)))
        )
        encoder.save()
    text = "\n\n".join([environment(), *parts])
    print(text)
    if given.write:
        write("styles", text)


def pairs_of(name: str, folder: Path) -> list[PreferredPair]:
    """The pairs of a set in which both sides say something."""
    found: Sequence[Pair]
    if name == "llmbar":
        found = [pair for subset in data.llmbar_pairs(folder).values() for pair in subset]
    else:
        found = data.mrbench_pairs(folder) if name == "mrbench" else data.hh_pairs(folder)
    pairs = [PreferredPair(pair.chosen, pair.rejected, pair.group, systems=pair.systems) for pair in found]
    return [pair for pair in pairs if reply_of(pair.chosen).strip() and reply_of(pair.rejected).strip()]


class Bench:
    """The pairs of one set, their features, and what has been measured on them."""

    def __init__(
        self, featuriser: ConversationFeaturiser, encoder: KeptVectors, pairs: Sequence[PreferredPair]
    ) -> None:
        self.pairs = pairs
        self._featuriser = featuriser
        self._encoder = encoder
        self._known: dict[str, Matrix] = {}
        texts = [text for pair in pairs for text in (asked_of(pair), reply_of(pair.chosen), reply_of(pair.rejected))]
        self._words = TfidfVectorizer(sublinear_tf=True, stop_words="english").fit(texts)
        self.found: Found = defaultdict(lambda: defaultdict(list))

    def differences(self, pairs: Sequence[PreferredPair]) -> Matrix:
        """Features of the better side less those of the other, (n, width)."""
        sides = {side.digest: side for pair in pairs for side in (pair.chosen, pair.rejected)}
        missing = [side for digest, side in sides.items() if digest not in self._known]
        for start in range(0, len(missing), 64):
            some = missing[start : start + 64]
            self._known |= {side.digest: row for side, row in zip(some, self._featuriser.features(some), strict=True)}
        return np.stack([self._known[pair.chosen.digest] - self._known[pair.rejected.digest] for pair in pairs])

    def relations(self, differences: Matrix, pairs: Sequence[PreferredPair]) -> Floats:
        """What of the request a reply takes up: the cosine, late interaction, shared words; (n, 7)."""
        start = self._featuriser.blocks["reply_numbers"].start
        places = [start + place for place in RELATIONS]
        return np.column_stack([differences[:, places].astype(np.float64), self.shared_words(pairs)])

    def shared_words(self, pairs: Sequence[PreferredPair]) -> Floats:
        """The tf-idf cosine of the better reply with the request, less that of the other; (n,)."""
        asked = self._words.transform([asked_of(pair) for pair in pairs])
        sides = [self._words.transform([reply_of(side) for side in some]) for some in _sides(pairs)]
        return np.asarray(asked.multiply(sides[0] - sides[1]).sum(axis=1)).ravel()

    def fold(self, train: Indices, test: Indices) -> None:
        """Fit on some dialogues, ask about the others."""
        learned, asked = ([self.pairs[row] for row in rows] for rows in (train, test))
        sets = {NATURAL: tuple(asked), **style_sets(Dataset((), tuple(asked)), self._encoder)}
        rows, groups = self.differences(learned), [pair.group for pair in learned]
        others = {name: self.differences(pairs) for name, pairs in sets.items()}
        for name, pairs in sets.items():
            related = self.relations(others[name], pairs)
            self._note("cosine of reply and request", name, related[:, 0], pairs)
            self._note("late interaction (MaxSim) over sentences", name, related[:, 1:3].sum(axis=1), pairs)
            self._note("tf-idf cosine of reply and request", name, related[:, -1], pairs)
        judged = np.array([pair.weight for pair in balanced(learned)])
        found = counterparts(Dataset((), tuple(balanced(learned))), self._encoder, "answers")
        beside = () if found is None else found.pairs
        both = np.concatenate([rows, self.differences(beside)]) if beside else rows
        weights = np.array([*judged, *(pair.weight for pair in beside)])
        spread = np.sqrt((both.astype(np.float64) ** 2).mean(axis=0))
        for reading, left_out in self._featuriser.readings.items():
            scale = np.where(left_out | (spread < 1e-6), 0.0, self._featuriser.emphasis / np.maximum(spread, 1e-6))
            everything = (both * scale).astype(np.float64)
            penalty = penalty_of(everything[: len(rows)], judged, groups)
            for title, count in ((reading, len(rows)), (f"{reading}, counterparts", len(both))):
                [head] = ridges(everything[:count], weights[:count], [penalty])
                for name, pairs in sets.items():
                    self._note(f"head: {title}", name, (others[name] * scale) @ head, pairs)

    def _note(self, judge: str, name: str, margins: Floats, pairs: Sequence[PreferredPair]) -> None:
        self.found[judge][name] += zip(wins(margins).tolist(), (pair.group for pair in pairs), strict=True)


def some_of(pairs: Sequence[PreferredPair], most: int) -> Sequence[PreferredPair]:
    """At most so many, of dialogues as they come by their hash."""
    return sorted(pairs, key=lambda pair: (fold_of(pair.group, 1 << 30), pair.chosen.digest))[:most]


def penalty_of(rows: Floats, weights: Floats, groups: Sequence[str]) -> float:
    """The one of least loss on training pairs that a head did not see."""
    size = float((rows**2).sum(axis=1).mean()) * len(rows) / 10.0
    said = np.zeros((len(PENALTIES), len(rows)))
    for train, test in folds_of(groups, INNER, salt="inner"):
        for place, head in enumerate(ridges(rows[train], weights[train], [p * size for p in PENALTIES])):
            said[place, test] = rows[test] @ head
    return PENALTIES[int(np.argmin((weights * (1.0 - said) ** 2).sum(axis=1)))] * size


def ridges(rows: Floats, weights: Floats, penalties: Sequence[float]) -> list[Floats]:
    """Weighted least-squares classification of differences (all of them wins), in the dual."""
    roots = np.sqrt(weights)
    weighed = rows * roots[:, None]
    strengths, basis = np.linalg.eigh(weighed @ weighed.T)
    along = basis.T @ roots
    return [weighed.T @ (basis @ (along / (strengths + penalty))) for penalty in penalties]


def table(name: str, bench: Bench) -> str:
    """All folds, and their figures over dialogues."""
    groups = [pair.group for pair in bench.pairs]
    for number, (train, test) in enumerate(folds_of(groups)):
        print(f"{name}: fold {number + 1}", file=sys.stderr, flush=True)
        bench.fold(train, test)
    shown = Table(f"{name}: share of pairs in the right order [95 %], five-fold by dialogue", ["judge", *COLUMNS])
    for judge, by_set in bench.found.items():
        shown.add(judge, *(_cell(by_set, column) for column in COLUMNS))
    sizes = {column: len(next(iter(bench.found.values())).get(column, ())) for column in COLUMNS}
    return f"{shown.text()}\n\nPairs: {', '.join(f'{column} {size}' for column, size in sizes.items())}."


def _cell(by_set: Mapping[str, Sequence[tuple[float, str]]], column: str) -> str:
    noted = by_set.get(column)
    if not noted:
        return "-"
    return str(share(np.array([value for value, _ in noted]), [group for _, group in noted]))


def asked_of(pair: PreferredPair) -> str:
    """What the reply answers to."""
    last = max(place for place, said in enumerate(pair.chosen.turns) if said.party == "agent")
    return next((said.text for said in reversed(pair.chosen.turns[:last]) if said.party == "persona"), "")


def _sides(pairs: Sequence[PreferredPair]) -> tuple[list[Conversation], list[Conversation]]:
    return [pair.chosen for pair in pairs], [pair.rejected for pair in pairs]


if __name__ == "__main__":
    main()
