"""What a preference head should be made of where pairs are few: five other ways beside the product's.

Usage: python -m benchmarks.quality.few_pairs --data DIR [--cache DIR] [--splits N] [--all] [--write]

The product's head is trained as `labs reward-model train` does. The others take its features with penalties by
evidence, without a part to choose settings on, and put either head together with a small block of plain numbers
(`two_levels`): the numbers of the reply that are features, or the comparisons of `comparisons` of the reply as it is
read, with what it answers. Pairs are those of hh harmless and replies of MRBench that people's verdicts set apart;
LLMBar is not opened. Figures are of dialogues that no head saw.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality import data
from benchmarks.quality.comparisons import traits
from benchmarks.quality.data import Pair
from benchmarks.quality.figures import FOLDS, Floats, Indices, folds_of, wins
from benchmarks.quality.heads import EVIDENCE_ROWS, cosines, log_lengths
from benchmarks.quality.preferences import Sides, sides
from benchmarks.quality.two_levels import INNER, small_head, spread, with_sum
from benchmarks.quality.vectors import KeptVectors
from benchmarks.report import Table, environment, write
from reward_server.encoders.loading import load_fast_encoder
from reward_server.fitting.reward_model.emphasis import learned_emphasis
from reward_server.fitting.reward_model.head_training import Recipe, fit
from reward_server.reward_models import segments
from reward_server.reward_models.conversation import Conversation
from reward_server.reward_models.dataset import OVERALL, Dataset, PreferredPair, hold_out
from reward_server.reward_models.features import ConversationFeaturiser
from reward_server.reward_models.heads import Matrix
from reward_server.reward_models.matrices import ExampleMatrices
from reward_server.reward_models.posterior import LinearPosterior
from reward_server.reward_models.uncertainty import fit_preferences
from reward_server.settings import load_settings

SIZES = (150, 400)
SPLITS = 6
FULL = "all"
PRODUCT, EVIDENCE = "as the product trains", "penalties by evidence"
NUMBERS, COMPARED = "numbers of the reply", "plain comparisons"


@dataclass(frozen=True)
class Known:
    """A set of pairs with all that heads are made of."""

    pairs: Sequence[Pair]
    groups: tuple[str, ...]
    sides: Sides
    blocks: Mapping[str, Floats]
    """By name, the small blocks: the preferred side less the other."""


@dataclass(frozen=True)
class Large:
    """What a head on all features says, as log-odds of the preferred side."""

    unseen: Floats
    """Of the training pairs, each by a head that did not see its dialogue."""
    held_out: Floats


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the public sets")
    parser.add_argument("--cache", type=Path, help="folder where sentence vectors are kept between runs")
    parser.add_argument("--splits", type=int, default=SPLITS, help=f"draws of the training pairs; default: {SPLITS}")
    parser.add_argument("--all", action="store_true", help="also five folds of all pairs, which takes half an hour")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/few_pairs.md")
    given = parser.parse_args(arguments)
    text = report(given.data, given.cache, given.splits, FOLDS if given.all else 0)
    print(text)
    if given.write:
        write("few_pairs", text)


def report(folder: Path, cache: Path | None, splits: int, folds: int = 0) -> str:
    """A table per set."""
    vectors = KeptVectors(load_fast_encoder(load_settings().encoder, "fp32"), cache)
    featuriser = ConversationFeaturiser(vectors)
    found = {
        "hh harmless": data.hh_pairs(folder / "hh_rlhf_harmless"),
        "MRBench": data.mrbench_pairs(folder / "mrbench"),
    }
    tables = []
    for name, pairs in found.items():
        known = known_of(featuriser, pairs)
        vectors.save()
        tables.append(table(name, known, measured(featuriser, known, splits, folds), splits))
    options = f"--splits {splits} --all" if folds else f"--splits {splits}"
    about = (
        f"Command: `python -m benchmarks.quality.few_pairs --data DIR {options} --write`. Features:"
        f" `{featuriser.version}`. In brackets the mean gain over the product's head on the same pairs, ± two standard"
        " errors over the draws or folds; these share pairs, so the true error is larger."
    )
    return "\n\n".join([environment(), about, *tables])


def known_of(featuriser: ConversationFeaturiser, pairs: Sequence[Pair]) -> Known:
    """Features and small blocks of pairs."""
    found = sides(featuriser, pairs)
    numbers = found.differences[:, featuriser.blocks["reply_numbers"]].astype(np.float64)
    counted = np.stack([traits(*_exchange(each.chosen)) - traits(*_exchange(each.rejected)) for each in pairs])
    plain = [log_lengths(featuriser, found.differences), cosines(featuriser, found.differences), counted]
    blocks = {NUMBERS: numbers, COMPARED: np.column_stack(plain)}
    return Known(pairs, tuple(pair.group for pair in pairs), found, blocks)


def _exchange(conversation: Conversation) -> tuple[str, str]:
    """What the reply answers, and the reply, both as they are read."""
    messages = segments.read(conversation)
    spoken = [place for place, message in enumerate(messages) if message.party == "agent" and message.segments]
    if not spoken:
        return "", ""
    heard = [message for message in messages[: spoken[-1]] if message.party == "persona"]
    return " ".join(heard[-1].segments) if heard else "", "\n".join(messages[spoken[-1]].segments)


# --- how it is divided ------------------------------------------------------------------------------


def measured(
    featuriser: ConversationFeaturiser, known: Known, splits: int, folds: int
) -> dict[str, dict[str, list[float]]]:
    """By number of training pairs and head, the held-out accuracies, one per draw or fold."""
    found: dict[str, dict[str, list[float]]] = {}
    for size, train, held_out in parts(known.groups, splits, folds):
        margins = judged(featuriser, known, train, held_out)
        for name, said in margins.items():
            found.setdefault(size, {}).setdefault(name, []).append(float(wins(said).mean()))
        print(f"  {size}: {', '.join(f'{wins(said).mean():.3f}' for said in margins.values())}", file=sys.stderr)
    return found


def parts(groups: Sequence[str], splits: int, folds: int) -> Iterator[tuple[str, Indices, Indices]]:
    """Draws of few training pairs, whole dialogues in random order; then so many folds of all of them."""
    names, place = np.unique(np.asarray(groups, dtype=np.str_), return_inverse=True)
    for draw in range(splits):
        order = np.argsort(np.random.default_rng(draw).permutation(len(names))[place], kind="stable")
        for size in SIZES:
            train, rest = order[:size], order[size:]
            yield str(size), train, rest[~np.isin(place[rest], place[train])]
    for train, held_out in folds_of(groups, folds) if folds else ():
        yield FULL, train, held_out


def judged(featuriser: ConversationFeaturiser, known: Known, train: Indices, held_out: Indices) -> dict[str, Floats]:
    """By head, the log-odds of the preferred side of pairs of other dialogues."""
    margins = {}
    for name, fitted in {PRODUCT: as_product, EVIDENCE: by_evidence}.items():
        large = fitted(featuriser, known, train, held_out)
        margins[name] = large.held_out
        margins |= {
            f"{name}, with {block}": with_block(large, rows[train], rows[held_out], block == COMPARED)
            for block, rows in known.blocks.items()
        }
    return margins


# --- heads ------------------------------------------------------------------------------------------


def as_product(featuriser: ConversationFeaturiser, known: Known, train: Indices, held_out: Indices) -> Large:
    """Trained as the product trains; for unseen dialogues, ridge heads of its penalty on the scale of its log-odds."""
    features: dict[str, Matrix] = {}
    rows = []
    for place in (*train, *held_out):
        pair = known.pairs[place]
        rows.append(PreferredPair(pair.chosen, pair.rejected, pair.group))
        features |= {pair.chosen.digest: known.sides.chosen[place], pair.rejected.digest: known.sides.rejected[place]}
    others = frozenset(known.groups[place] for place in held_out)
    split = hold_out(Dataset(preferred=tuple(rows)), others, seed=0)
    first, middle = (
        ExampleMatrices.of(part, features, (OVERALL,), featuriser.width) for part in (split.train, split.validation)
    )
    emphasis = learned_emphasis(first, featuriser.emphasis, featuriser.kinds)
    found = fit((OVERALL,), first, middle, Recipe(), emphasis=emphasis, costs=featuriser.costs)

    def standard(places: Indices) -> Floats:
        chosen, rejected = (
            found.heads.standardised(side[places]) for side in (known.sides.chosen, known.sides.rejected)
        )
        return np.asarray(chosen - rejected)

    own, weights = standard(train), found.heads.weights[0].astype(np.float64)
    prior = 2.0 * found.l2 * len(first.chosen) / found.heads.width
    alike = _ridge(own, prior).predict(own).mean
    size = float((own @ weights) @ alike) / float(alike @ alike)
    return Large(size * _unseen(own, known.groups, train, prior), standard(held_out) @ weights)


def by_evidence(featuriser: ConversationFeaturiser, known: Known, train: Indices, held_out: Indices) -> Large:
    """All pairs of the training part are fitted, with one penalty per kind of features by their evidence."""
    chosen, rejected = known.sides.chosen[train], known.sides.rejected[train]
    examples = _pairs_alone(chosen, rejected)
    emphasis = learned_emphasis(examples, featuriser.emphasis, featuriser.kinds).astype(np.float64)
    deviation = examples.all_features.astype(np.float64).std(axis=0)
    stretch = np.where(deviation < 1e-6, 0.0, emphasis / np.maximum(deviation, 1e-6)) / np.linalg.norm(emphasis)
    own, others = (known.sides.differences[places].astype(np.float64) * stretch for places in (train, held_out))
    # The evidence of a part of the rows finds the penalty, as in `heads.preference_prior`.
    prior = 1.0 / _ridge(own[:: max(1, len(own) // EVIDENCE_ROWS)]).outside
    return Large(_unseen(own, known.groups, train, prior), _ridge(own, prior).predict(others).mean)


def with_block(large: Large, plain: Floats, others: Floats, summed: bool) -> Floats:
    """The margin of a large head as one more number beside a small block; `summed` adds their equal weights."""
    scale = spread(plain)
    own, held_out = plain / scale, others / scale
    kinds = [0] * plain.shape[1]
    if summed:
        own, held_out, kinds = with_sum(own), with_sum(held_out), [*kinds, 1]
    head = small_head(np.column_stack([own, large.unseen]), np.array([*kinds, kinds[-1] + 1], dtype=np.intp))
    if head.weights[-1] <= 0.0:
        return large.held_out  # a head is not turned round: where the block contradicts it, it stays alone
    return head.predict(np.column_stack([held_out, large.held_out])).mean


def _pairs_alone(chosen: Matrix, rejected: Matrix) -> ExampleMatrices:
    nobody, ones = np.zeros((0, chosen.shape[1]), np.float32), np.ones(len(chosen), np.float32)
    return ExampleMatrices(nobody, np.zeros((0, 1), np.float32), chosen, rejected, ones, ones)


def _unseen(rows: Floats, groups: Sequence[str], train: Indices, prior: float) -> Floats:
    margins = np.zeros(len(rows))
    for seen, rest in folds_of([groups[place] for place in train], INNER):
        margins[rest] = _ridge(rows[seen], prior).predict(rows[rest]).mean
    return margins


def _ridge(rows: Floats, prior: float | None = None) -> LinearPosterior:
    """A Bradley-Terry head on the scale that the rows are on, so that its penalty is for that one."""
    size = np.sqrt((rows**2).mean(axis=0))
    return fit_preferences(rows, prior_precision=prior, emphasis=np.where(size > 1e-9, size, 1.0))


# --- what is shown ----------------------------------------------------------------------------------


def table(name: str, known: Known, found: Mapping[str, Mapping[str, Sequence[float]]], splits: int) -> str:
    """Accuracy of each head, and how far it is ahead of the product's."""
    caption = (
        f"{name}: held-out accuracy by training pairs, of {len(known.pairs)} pairs in {len(set(known.groups))}"
        f" dialogues; {splits} draws{f', or {FOLDS} folds of all' if FULL in found else ''}"
    )
    shown = Table(caption, ["head", *found])
    for head in next(iter(found.values())):
        shown.add(head, *(_cell(by_head[head], by_head[PRODUCT]) for by_head in found.values()))
    return shown.text()


def _cell(accuracies: Sequence[float], product: Sequence[float]) -> str:
    gains: NDArray[np.float64] = np.subtract(accuracies, product)
    mean = f"{np.mean(accuracies):.3f}"
    if not gains.any():
        return mean
    error = 2.0 * gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else float("nan")
    return f"{mean} ({gains.mean():+.3f} ± {error:.3f})"


if __name__ == "__main__":
    main()
