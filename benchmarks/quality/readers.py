"""Is there a stronger reader than a linear head with likeness to the request beside it? What was tried, in one table.

Usage: python -m benchmarks.quality.readers --data DIR [--cache DIR] [--only SETS] [--most N] [--tuned N] [--write]

Five folds by dialogue, on the sets of `shipped`; of MRBench a second table leaves out a third of the tutors at a time,
too. Every stack is the head of `styles` (all features, counterparts) with measures beside it whose weights are learned
from dialogues that the head had not seen, as the product does (`reward_models.relations`):

    as shipped          the cosine of reply and request, and late interaction over sentences in both directions
    + tokens            late interaction over token vectors, too
    + tf-idf            shared words, too
    cosine and tf-idf   the head, the cosine and shared words alone
    cross-encoder       in place of a head, in the first N folds: the last two layers trained over request and reply
    two towers          the same over request and reply apart

The encoder is that of the setting: LABS_ENCODER=FOLDER measures another one, in all rows.

The last line of each is what it has less what is shipped, on the same pairs.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.quality.figures import Floats, Indices, folds_of, share, wins
from benchmarks.quality.shipped import ADVERSARIAL, EASY, NORMAL, Pairs, sets_of
from benchmarks.quality.styles import COLUMNS, NATURAL, SETS, Bench, pairs_of, penalty_of, ridges, some_of
from benchmarks.quality.token_vectors import TokenLikeness
from benchmarks.quality.tuned_readers import STEPS, WAYS, tuned
from benchmarks.quality.vectors import KeptVectors
from benchmarks.report import Table, environment, write
from reward_server.encoders.loading import load_fast_encoder
from reward_server.fitting.reward_model.unseen import systems_of
from reward_server.reward_models.counterparts import counterparts
from reward_server.reward_models.dataset import Dataset
from reward_server.reward_models.features import ConversationFeaturiser
from reward_server.reward_models.relations import weights_of
from reward_server.reward_models.style import balanced
from reward_server.settings import load_settings

INNER = 4
PARTS = 3
"""Of the tutors; pairs that are asked about have both replies of one part, of which in more parts there are few."""
SHOWN = (*COLUMNS, ADVERSARIAL)
HEAD, SHIPPED = "head", "as shipped"
MEASURES = ("cosine", "request taken up", "reply to the point", "tokens taken up", "tokens to the point", "tf-idf")
STACKS: Mapping[str, tuple[int, ...]] = {
    SHIPPED: (0, 1, 2),
    "+ tokens": (0, 1, 2, 3, 4),
    "+ tf-idf": (0, 1, 2, 5),
    "+ tokens and tf-idf": (0, 1, 2, 3, 4, 5),
    "cosine and tf-idf": (0, 5),
}
ALONE: Mapping[str, tuple[int, ...]] = {
    "cosine alone": (0,),
    "sentences alone": (1, 2),
    "tokens alone": (3, 4),
    "tf-idf alone": (5,),
}


@dataclass
class Noted:
    """By set and judge, whether each pair came out right; NaN where the judge was not asked."""

    right: dict[str, dict[str, list[float]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    groups: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the public sets")
    parser.add_argument("--cache", type=Path, help="folder where sentence vectors are kept between runs")
    parser.add_argument("--only", default=",".join(SETS), help=f"some of {','.join(SETS)}")
    parser.add_argument("--most", type=int, default=450, help="pairs of a set at most")
    parser.add_argument("--folds", type=int, nargs="+", help="of the five alone, by number from 1")
    parser.add_argument("--tuned", type=int, default=0, help="so many folds with fine-tuned layers, which is slow")
    parser.add_argument("--ways", default=",".join(WAYS), help=f"of fine-tuning: some of {','.join(WAYS)}")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/readers.md")
    given = parser.parse_args(arguments)
    base = load_settings().encoder
    encoder = KeptVectors(load_fast_encoder(base, "fp32"), given.cache, threads=1)
    likeness = TokenLikeness(base)
    command = f"python -m benchmarks.quality.readers --data DIR --most {given.most} --tuned {given.tuned} --write"
    parts = [f"Command: `{command}`. Fine-tuned: {STEPS} steps."]
    for name in given.only.split(","):
        pairs = some_of(pairs_of(name, given.data / SETS[name]), given.most)
        bench = Readers(base, encoder, likeness, pairs, given.ways.split(","))
        parts += bench.tables(name, given.tuned, given.folds)
        print("\n\n".join(parts[1:]), flush=True)
        encoder.save()
    if given.write:
        write("readers", "\n\n".join([environment(), *parts]))


class Readers:
    """The pairs of one set, and every way to read them."""

    def __init__(
        self, base: str, encoder: KeptVectors, likeness: TokenLikeness, pairs: Pairs, ways: Sequence[str]
    ) -> None:
        """Args: base: the encoder of the setting, whose layers are fine-tuned. ways: how they are."""
        self._base = base
        self._ways = ways
        self._pairs = pairs
        self._encoder = encoder
        self._likeness = likeness
        self._featuriser = ConversationFeaturiser(encoder, remembered=200_000)
        self._bench = Bench(self._featuriser, encoder, pairs)

    def tables(self, name: str, tuned_folds: int, only: Sequence[int] | None) -> Iterator[str]:
        """That of folds by dialogue, and where pairs name their systems that of systems left out, too."""
        by_dialogue = list(folds_of([pair.group for pair in self._pairs]))
        which = "five-fold by dialogue"
        if only:
            by_dialogue = [by_dialogue[number - 1] for number in only]
            which = f"of five folds by dialogue number {', '.join(map(str, only))}"
        yield self._table(f"{name}: share of pairs in the right order [95 %], {which}", by_dialogue, tuned_folds)
        if any(map(systems_of, self._pairs)):
            caption = f"{name}: neither the dialogue nor the tutors of a pair learned from"
            yield self._table(caption, list(apart(self._pairs, by_dialogue)), 0)

    def _table(self, caption: str, folds: Sequence[tuple[Indices, Indices]], tuned_folds: int) -> str:
        noted = Noted()
        for number, (train, test) in enumerate(folds):
            print(f"  {caption.partition(':')[0]}: fold {number + 1} of {len(folds)}", file=sys.stderr, flush=True)
            self._fold(
                [self._pairs[row] for row in train], [self._pairs[row] for row in test], noted, number < tuned_folds
            )
        return shown(caption, noted)

    def _fold(self, learned: Pairs, asked: Pairs, noted: Noted, fine_tunes: bool) -> None:
        weighed = balanced(learned)
        found = counterparts(Dataset((), tuple(weighed)), self._encoder, "answers")
        beside = () if found is None else found.pairs
        sets = {
            name: some for name, some in sets_of(asked, self._encoder).items() if some and name not in {EASY, NORMAL}
        }
        judges = self._judges(weighed, beside)
        layers = {way: tuned(way, self._base, weighed, beside) for way in self._ways} if fine_tunes else {}
        for title, some in sets.items():
            noted.groups[title] += [pair.group for pair in some]
            rows, measures = self._bench.differences(some).astype(np.float64), self._measures(some)
            for name, (weights, places, counts) in judges.items():
                noted.right[title][name] += wins(rows @ weights + measures[:, places] @ counts).tolist()
            for way in WAYS:
                right = wins(layers[way](some)).tolist() if way in layers else [float("nan")] * len(some)
                noted.right[title][way] += right

    def _judges(self, judged: Pairs, beside: Pairs) -> dict[str, tuple[Floats, list[int], Floats]]:
        """By name, the weights of the features, and places and weights of the measures beside them."""
        everything = [*judged, *beside]
        rows, weights = self._bench.differences(everything), np.array([pair.weight for pair in everything])
        groups = [pair.group for pair in everything]
        spread = np.sqrt((rows.astype(np.float64) ** 2).mean(axis=0))
        scale = np.where(spread < 1e-6, 0.0, self._featuriser.emphasis / np.maximum(spread, 1e-6))
        scaled, count = (rows * scale).astype(np.float64), len(judged)
        penalty = penalty_of(scaled[:count], weights[:count], groups[:count])
        head = ridges(scaled, weights, [penalty])[0]
        unseen = np.zeros(count)
        for train, test in folds_of(groups, INNER, salt="stack"):
            asked = test[test < count]
            unseen[asked] = scaled[asked] @ ridges(scaled[train], weights[train], [penalty])[0]
        measures, size = self._measures(judged), _size(unseen)
        nothing = np.zeros_like(head)
        found = {name: (nothing, list(some), 1.0 / _size(measures)[list(some)]) for name, some in ALONE.items()}
        found[HEAD] = (head * scale, [], np.zeros(0))
        for name, some in STACKS.items():
            places = list(some)
            sizes = _size(measures)[places]
            columns = np.column_stack([unseen / size, measures[:, places] / sizes])
            shares = weights_of(columns, np.ones(count), weights[:count])
            found[name] = (head * scale * shares[0] / size, places, shares[1:] / sizes)
        return found

    def _measures(self, pairs: Pairs) -> Floats:
        """Of the better side less the other, shape (n, len(MEASURES))."""
        related = self._bench.differences(pairs)[:, list(self._featuriser.relations.values())].astype(np.float64)
        tokens = self._likeness([pair.chosen for pair in pairs]) - self._likeness([pair.rejected for pair in pairs])
        return np.column_stack([related, tokens, self._bench.shared_words(pairs)])


def apart(pairs: Pairs, folds: Sequence[tuple[Indices, Indices]]) -> Iterator[tuple[Indices, Indices]]:
    """Of each fold, pairs by a third of the systems to ask about, and those by none of these to learn from."""
    names = sorted({name for pair in pairs for name in systems_of(pair)})
    for train, test in folds:
        for part in range(PARTS):
            left_out = frozenset(names[part::PARTS])
            learned = [row for row in train if not systems_of(pairs[row]) & left_out]
            asked = [row for row in test if systems_of(pairs[row]) <= left_out]
            if asked:
                yield np.array(learned), np.array(asked)


def _size(values: Floats) -> Floats:
    return np.asarray(np.maximum(np.sqrt((values**2).mean(axis=0)), 1e-9))


def shown(caption: str, noted: Noted) -> str:
    """Each judge with its difference from what is shipped, on the pairs that it was asked about."""
    columns = [name for name in SHOWN if noted.groups[name]]
    table = Table(caption, ["judge", *columns])
    for judge in next(iter(noted.right.values())):
        cells = [_cell(np.array(noted.right[name][judge]), noted.groups[name]) for name in columns]
        if set(cells) == {"-"}:
            continue
        table.add(judge, *cells)
        if judge != SHIPPED:
            gains = (
                _cell(np.subtract(noted.right[name][judge], noted.right[name][SHIPPED]), noted.groups[name], "+.3f")
                for name in columns
            )
            table.add("less shipped", *gains)
    sizes = ", ".join(f"{name} {len(noted.groups[name])}" for name in columns)
    tuned_pairs = {len(noted.groups[NATURAL]) - int(np.isnan(noted.right[NATURAL][way]).sum()) for way in WAYS}
    of_them = f" Fine-tuned on {max(tuned_pairs)} of the pairs as judged." if max(tuned_pairs) else ""
    return f"{table.text()}\n\nPairs: {sizes}.{of_them}"


def _cell(values: Floats, groups: Sequence[str], form: str = ".3f") -> str:
    known = ~np.isnan(values)
    if not known.any():
        return "-"
    found = share(values[known], [group for group, is_known in zip(groups, known, strict=True) if is_known])
    return f"{found.value:{form}} [{found.low:{form}}, {found.high:{form}}]"


if __name__ == "__main__":
    main()
