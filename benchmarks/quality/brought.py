"""How good is a reward model that you bring? A sequence classifier, from a folder or behind a URL, on public pairs.

Usage: python -m benchmarks.quality.brought --data DIR --classifier FOLDER_OR_URL [--model NAME]
       [--only llmbar,mrbench,hh] [--most N] [--cache DIR] [--write]

Prints for each set the share of pairs in the right order on the sets of `shipped`: as people judged them, where style
agrees with them and disagrees, where it is hard (restyled), normal and easy, and beside replies to near requests; next
to what learns nothing: the longer reply, the cosine of reply and request, shared words. The last line is what the model
has less the cosine, on the same pairs. LLMBar is shown by subset, too. A folder is computed here, on a GPU where
there is one; a server is asked by 16 at once. The key of a server is LABS_CLASSIFIER_API_KEY.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from sklearn.feature_extraction.text import TfidfVectorizer

from benchmarks.quality import data
from benchmarks.quality.figures import Floats, share, wins
from benchmarks.quality.shipped import COSINE, LENGTH, SHOWN, cell, sets_of
from benchmarks.quality.styles import SETS, asked_of, pairs_of
from benchmarks.quality.vectors import KeptVectors
from benchmarks.report import Table, environment, write
from reward_server.classifier.build import AT_ONCE, classifier_at
from reward_server.classifier.chat import chat_of
from reward_server.classifier.judge import Classifier, ClassifierJudge
from reward_server.encoders.loading import load_encoder
from reward_server.reward_models.conversation import Conversation
from reward_server.reward_models.dataset import PreferredPair
from reward_server.reward_models.style import reply_of
from reward_server.settings import load_settings

MODEL = "**the model**"


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the public sets")
    parser.add_argument("--classifier", required=True, help="a folder, or a URL that ends in /classify or /pooling")
    parser.add_argument("--model", help="the name under which a server has it")
    parser.add_argument("--only", default=",".join(SETS), help=f"some of {','.join(SETS)}")
    parser.add_argument("--most", type=int, default=1_000_000, help="pairs of a set at most")
    parser.add_argument("--cache", type=Path, help="folder where sentence vectors are kept between runs")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/brought.md")
    given = parser.parse_args(arguments)
    settings = load_settings()
    key = settings.classifier_api_key
    classifier = classifier_at(given.classifier, given.model, None if key is None else key.get_secret_value())
    encoder = KeptVectors(load_encoder(settings.encoder), given.cache, threads=1)
    parts = ["Command: `python -m benchmarks.quality.brought --data DIR --classifier FOLDER_OR_URL --write`."]
    for name in given.only.split(","):
        print(f"{name} …", file=sys.stderr, flush=True)
        pairs = pairs_of(name, given.data / SETS[name])[: given.most]
        parts.append(by_style(name, pairs, Judges(classifier, encoder, pairs)))
        if name == "llmbar":
            parts.append(by_subset(given.data / SETS[name], Judges(classifier, encoder, pairs), given.most))
        encoder.save()
    text = "\n\n".join([environment(accelerator()), *parts])
    print(text)
    if given.write:
        write("brought", text)


def accelerator() -> str:
    """What a model in a folder is computed on, besides the processor."""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"


class Judges:
    """The model that was brought, beside judges that learn nothing."""

    def __init__(self, classifier: Classifier, encoder: KeptVectors, pairs: Sequence[PreferredPair]) -> None:
        self._judge = ClassifierJudge(classifier, ThreadPoolExecutor(AT_ONCE))
        self.encoder = encoder
        texts = [text for pair in pairs for text in (asked_of(pair), reply_of(pair.chosen), reply_of(pair.rejected))]
        self._words = TfidfVectorizer(sublinear_tf=True, stop_words="english").fit(texts)

    def margins(self, pairs: Sequence[PreferredPair]) -> dict[str, Floats]:
        """By judge, the better side less the other, (n,)."""
        sides = [[pair.chosen for pair in pairs], [pair.rejected for pair in pairs]]
        asked = [asked_of(pair) for pair in pairs]
        values = [self._values(each, asked) for each in sides]
        return {name: values[0][name] - values[1][name] for name in values[0]}

    def _values(self, sides: Sequence[Conversation], asked: Sequence[str]) -> Mapping[str, Floats]:
        replies = [reply_of(side) for side in sides]
        own, heard = self.encoder.encode(replies), self.encoder.encode(asked)
        words = self._words.transform(replies).multiply(self._words.transform(asked)).sum(axis=1)
        return {
            LENGTH: np.array([float(len(reply.split())) for reply in replies]),
            COSINE: np.einsum("nd,nd->n", own.astype(np.float64), heard.astype(np.float64)),
            "tf-idf cosine of reply and request": np.asarray(words, dtype=np.float64).ravel(),
            MODEL: np.array(self._judge.outputs([chat_of(side) for side in sides])),
        }


def by_style(name: str, pairs: Sequence[PreferredPair], judges: Judges) -> str:
    """A set, as judged and where style agrees, disagrees, or is exchanged."""
    sets = sets_of(pairs, judges.encoder)
    return _table(
        f"{name}: share of pairs in the right order [95 %]", {c: sets[c] for c in SHOWN if sets.get(c)}, judges
    )


def by_subset(folder: Path, judges: Judges, most: int) -> str:
    """LLMBar's subsets."""
    subsets = {
        subset: tuple(PreferredPair(pair.chosen, pair.rejected, pair.group) for pair in pairs[:most])
        for subset, pairs in data.llmbar_pairs(folder).items()
    }
    return _table("LLMBar by subset", subsets, judges)


def _table(title: str, sets: Mapping[str, Sequence[PreferredPair]], judges: Judges) -> str:
    table = Table(title, ["judge", *(f"{name} ({len(pairs)})" for name, pairs in sets.items())])
    found = {name: judges.margins(pairs) for name, pairs in sets.items()}
    for judge in next(iter(found.values())):
        cells = (share(wins(found[name][judge]), [pair.group for pair in pairs]) for name, pairs in sets.items())
        table.add(judge, *cells)
    table.add("the model less the cosine", *(_gain(found[name], pairs) for name, pairs in sets.items()))
    return table.text()


def _gain(margins: Mapping[str, Floats], pairs: Sequence[PreferredPair]) -> str:
    return cell(wins(margins[MODEL]) - wins(margins[COSINE]), [pair.group for pair in pairs], "+.3f")


if __name__ == "__main__":
    main()
