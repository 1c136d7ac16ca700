"""What `labs reward-model train` makes of style and of requests that are alike, on dialogues it was not trained on.

Usage: python -m benchmarks.quality.shipped --data DIR [--cache DIR] [--most N] [--folds N] [--write]

Five folds by dialogue, or the first N of them. On the others the product's own selection fits heads in all its ways and
keeps one (`jobs.reward_model.selection`), once with what joins a reply to its request weighed beside the head and once
without. Sets are those of `styles`, and three more:

    easy, normal   as `restyled`, which is the hard one, with the better reply laid out, or neither
    adversarial    as `neighbours`, with that of the longer replies to the twenty nearest other requests which is most
                   like the request by the cosine of their sentences: the hardest for a judge of likeness
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.quality.figures import Floats, folds_of, share, wins
from benchmarks.quality.styles import COLUMNS, NATURAL, SETS, pairs_of, some_of
from benchmarks.quality.vectors import KeptVectors
from benchmarks.report import Table, environment, write
from reward_server.encoders.encoder import TextEncoder, meaning_width
from reward_server.encoders.loading import load_fast_encoder
from reward_server.fitting.reward_model.head_training import Recipe
from reward_server.fitting.reward_model.selection import Beside, SelectedFit, Selection, SelectionOptions
from reward_server.fitting.reward_model.style_choice import AUTO, balanced_parts
from reward_server.reward_models import segments
from reward_server.reward_models.checkpoint import TrainingCheckpoint
from reward_server.reward_models.conversation import Conversation
from reward_server.reward_models.dataset import Dataset, DatasetSplit, PreferredPair, hold_out
from reward_server.reward_models.feature_shelf import FeatureShelf
from reward_server.reward_models.features import ConversationFeaturiser
from reward_server.reward_models.style import dressed, reply_of, style_of, undressed, with_reply
from reward_server.reward_models.style_sets import NEAREST, judged_pairs, request_of, requests_alike, style_sets
from reward_server.reward_models.word_baseline import WordLine
from reward_server.settings import load_settings

EASY, NORMAL, ADVERSARIAL = "easy", "normal", "adversarial"
SHOWN = (*COLUMNS, EASY, NORMAL, ADVERSARIAL)
HEAD, SHIPPED = "head alone (--no-relations)", "as shipped"
LENGTH, COSINE, WORDS = "the longer reply", "cosine of reply and request", "tf-idf + linear"
Pairs = Sequence[PreferredPair]


@dataclass
class Noted:
    """By judge and set, whether each pair came out right; and what was kept in each fold."""

    right: dict[str, dict[str, list[float]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    groups: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    kept: list[str] = field(default_factory=list)


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the public sets")
    parser.add_argument("--cache", type=Path, help="folder where sentence vectors are kept between runs")
    parser.add_argument("--only", default=",".join(SETS), help=f"some of {','.join(SETS)}")
    parser.add_argument("--most", type=int, default=1_000_000, help="pairs of a set at most")
    parser.add_argument("--folds", type=int, default=5, help="so many of the five folds")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/shipped.md")
    given = parser.parse_args(arguments)
    encoder = KeptVectors(load_fast_encoder(load_settings().encoder, "fp32"), given.cache, threads=1)
    command = f"python -m benchmarks.quality.shipped --data DIR --most {given.most} --folds {given.folds} --write"
    parts = [f"Command: `{command}`."]
    for name in given.only.split(","):
        pairs = some_of(pairs_of(name, given.data / SETS[name]), given.most)
        parts.append(table(name, measured(pairs, encoder, given.folds)))
        print(parts[-1], flush=True)
        encoder.save()
    text = "\n\n".join([environment(), *parts])
    if given.write:
        write("shipped", text)


def measured(pairs: Pairs, encoder: KeptVectors, folds: int) -> Noted:
    """The first so many of five folds."""
    featuriser = ConversationFeaturiser(encoder, remembered=200_000)
    noted = Noted()
    with tempfile.TemporaryDirectory() as folder:
        shelf = FeatureShelf(Path(folder) / "features")
        for number, (_, test) in enumerate(list(folds_of([pair.group for pair in pairs]))[:folds]):
            fold(pairs, [pairs[place] for place in test], noted, featuriser, encoder, shelf, Path(folder) / str(number))
            print(f"  fold {number + 1}: {noted.kept[-1]}", file=sys.stderr, flush=True)
    return noted


def fold(
    pairs: Pairs,
    asked: Pairs,
    noted: Noted,
    featuriser: ConversationFeaturiser,
    encoder: TextEncoder,
    shelf: FeatureShelf,
    folder: Path,
) -> None:
    """Train as the product does on the other dialogues, and ask about these."""
    parts = hold_out(Dataset((), tuple(pairs)), frozenset(pair.group for pair in asked), seed=0)
    judges = Judges(parts, featuriser, encoder, shelf, folder)
    noted.kept.append(judges.kept)
    judges.note(sets_of(asked, encoder), noted)


class Judges:
    """The product's heads, trained on one split, beside judges that learn next to nothing."""

    def __init__(
        self,
        split: DatasetSplit,
        featuriser: ConversationFeaturiser,
        encoder: TextEncoder,
        shelf: FeatureShelf,
        folder: Path,
        *,
        features: str = AUTO,
        counterparts: Beside = "auto",
    ) -> None:
        """Args: folder: of checkpoints. features, counterparts: as the options of `train`."""
        self._featuriser, self._shelf = featuriser, shelf
        parts = balanced_parts(split)
        rows = shelf.features(
            featuriser, [each for part in (parts.train, parts.validation) for each in part.conversations()]
        )
        self._heads: dict[str, SelectedFit] = {}
        for name, relations in ((HEAD, False), (SHIPPED, True)):
            wanted = SelectionOptions(features, counterparts, "answers", Recipe(), relations)
            # The same heads are found again in the checkpoint.
            self._heads[name] = Selection(parts, wanted, encoder, shelf, lambda *_: None).best(
                featuriser, rows, TrainingCheckpoint(folder, "fold"), "training"
            )
        learned = parts.train.preferred
        self._words = WordLine.of_pairs(
            [reply_of(pair.chosen) for pair in learned],
            [reply_of(pair.rejected) for pair in learned],
            np.ones(len(learned)),
        )

    @property
    def kept(self) -> str:
        """The way that was kept, with the weights of the relations."""
        about = self._heads[SHIPPED].about
        return f"{about['features']} {about.get('relations', '')}"

    def note(self, sets: Mapping[str, Pairs], noted: Noted) -> None:
        """Ask everyone about these pairs."""
        for title, some in sets.items():
            noted.groups[title] += [pair.group for pair in some]
            better, worse = (self._values(sides) for sides in _sides(some))
            for judge, values in better.items():
                noted.right[judge][title] += wins(values - worse[judge]).tolist()

    def _values(self, sides: Sequence[Conversation]) -> dict[str, Floats]:
        replies = [reply_of(side) for side in sides]
        rows = self._shelf.features(self._featuriser, sides).rows([side.digest for side in sides])
        likeness = rows[:][:, self._featuriser.relations["cosine"]].astype(np.float64)
        return {
            LENGTH: np.array([style_of(reply)[0] for reply in replies]),
            COSINE: likeness,
            WORDS: self._words(replies),
            **{name: kept.fitted.heads.raw(rows)[:, 0] for name, kept in self._heads.items()},
        }


def sets_of(asked: Pairs, encoder: TextEncoder) -> Mapping[str, Pairs]:
    """All sets that these pairs make, by name."""
    data = Dataset((), tuple(asked))
    judged = judged_pairs(data)
    return {
        NATURAL: asked,
        **style_sets(data, encoder),
        EASY: [_styled(pair, dressed, undressed) for pair in judged],
        NORMAL: [_styled(pair, undressed, undressed) for pair in judged],
        ADVERSARIAL: adversarial(judged, encoder),
    }


def adversarial(judged: Pairs, encoder: TextEncoder) -> Pairs:
    """Each better reply in a paragraph, beside the longer reply to a near request that is most like its own."""
    some = list({(pair.group, reply_of(pair.chosen)): pair for pair in judged}.values())
    alike = requests_alike(some, encoder)
    found = []
    for place, pair in enumerate(some):
        near = [other for other in np.argsort(-alike[place], kind="stable") if some[other].group != pair.group][
            :NEAREST
        ]
        better = undressed(reply_of(pair.chosen))
        replies = dict.fromkeys(reply_of(side) for other in near for side in (some[other].chosen, some[other].rejected))
        longer = [reply for reply in replies if style_of(dressed(reply))[0] > style_of(better)[0]]
        if longer:
            request = _mean(request_of(pair.chosen), encoder)
            foreign = max(longer, key=lambda reply: float(request @ _mean(reply, encoder)))
            sides = with_reply(pair.chosen, better), with_reply(pair.chosen, dressed(foreign))
            found.append(PreferredPair(*sides, pair.group, pair.row))
    return found


def _mean(text: str, encoder: TextEncoder) -> Floats:
    vectors = encoder.encode(segments.sentences(text) or [text])[:, : meaning_width(encoder)].astype(np.float64)
    mean = vectors.mean(axis=0)
    return np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-9))


def _sides(pairs: Pairs) -> tuple[list[Conversation], list[Conversation]]:
    return [pair.chosen for pair in pairs], [pair.rejected for pair in pairs]


def _styled(pair: PreferredPair, better: Callable[[str], str], worse: Callable[[str], str]) -> PreferredPair:
    chosen = with_reply(pair.chosen, better(reply_of(pair.chosen)))
    return PreferredPair(chosen, with_reply(pair.rejected, worse(reply_of(pair.rejected))), pair.group, pair.row)


def table(name: str, noted: Noted) -> str:
    """Figures over dialogues, and what weighing relations adds on the same pairs."""
    shown = Table(f"{name}: share of pairs in the right order [95 %]", ["judge", *SHOWN])
    columns = [column for column in SHOWN if noted.groups[column]]
    for judge, by_set in noted.right.items():
        shown.add(judge, *(cell(by_set[each], noted.groups[each]) if each in columns else "-" for each in SHOWN))
    for other in (HEAD, COSINE):
        gains = {each: np.subtract(noted.right[SHIPPED][each], noted.right[other][each]) for each in columns}
        cells = (cell(gains[each], noted.groups[each], "+.3f") if each in columns else "-" for each in SHOWN)
        shown.add(f"{SHIPPED} less {other}", *cells)
    sizes = ", ".join(f"{column} {len(noted.groups[column])}" for column in columns)
    kept = "; ".join(f"fold {number}: {way}" for number, way in enumerate(noted.kept, 1))
    return f"{shown.text()}\n\nPairs: {sizes}. Kept, with the weights of the relations: {kept}."


def cell(values: Sequence[float] | Floats, groups: Sequence[str], form: str = ".3f") -> str:
    """The mean of values (n,) with its interval over dialogues."""
    found = share(np.asarray(values), groups)
    return f"{found.value:{form}} [{found.low:{form}}, {found.high:{form}}]"


if __name__ == "__main__":
    main()
