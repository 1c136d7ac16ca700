"""MRBench: do heads know what a reply does, or who wrote it? Figures within one tutor beside the pooled ones.

Usage: python -m benchmarks.quality.within --data DIR [--cache DIR] [--write]

Pooled figures mix tutors, and a head that knows a tutor by its manner has good ones. So heads are asked about
conversations they have not seen (as in `benchmarks.quality`), about tutors they have not seen, and about replies of
one tutor at a time (the mean of the tutors' areas, weighted by their replies). Beside them stand the mean label of each
tutor in the training folds, and tf-idf with a logistic regression.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from benchmarks.quality import data
from benchmarks.quality.data import DIMENSIONS, Reply
from benchmarks.quality.figures import Floats, auc, auc_of, folds_of
from benchmarks.quality.heads import criterion_scores
from benchmarks.quality.vectors import KeptVectors
from benchmarks.report import Table, environment, write
from reward_server.encoders.loading import load_fast_encoder
from reward_server.reward_models.features import ConversationFeaturiser
from reward_server.reward_models.reliability import FigureInterval, bootstrap
from reward_server.settings import load_settings

LEAST = 5
"""Of each verdict a tutor needs so many replies for an area of its own."""
DRAWS = 400


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the public sets")
    parser.add_argument("--cache", type=Path, help="folder where sentence vectors are kept between runs")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/within.md")
    given = parser.parse_args(arguments)
    encoder = KeptVectors(load_fast_encoder(load_settings().encoder, "fp32"), given.cache, threads=1)
    featuriser = ConversationFeaturiser(encoder, remembered=200_000)
    shown = table(featuriser, data.mrbench_replies(given.data / "mrbench"))
    encoder.save()
    text = "\n\n".join([environment(), "Command: `python -m benchmarks.quality.within --data DIR --write`.", shown])
    print(text)
    if given.write:
        write("within", text)


def table(featuriser: ConversationFeaturiser, replies: Sequence[Reply]) -> str:
    """All criteria, and their mean."""
    talks, tutors = [reply.group for reply in replies], [reply.system for reply in replies]
    features = featuriser.features([reply.conversation for reply in replies])
    labels = [np.array([float(reply.met[name]) for reply in replies]) for name in DIMENSIONS]
    by_talk = criterion_scores(featuriser, features, labels, talks)
    by_tutor = criterion_scores(featuriser, features, labels, tutors)
    texts = [reply.conversation.turns[-1].text for reply in replies]
    shown = Table(
        f"MRBench within tutors: AUC, {len(replies)} replies of {len(set(tutors))} tutors",
        ["criterion", "head [95 %]", "head within one tutor [95 %]", "head, unseen tutors", *_SIMPLE],
    )
    values: list[list[float]] = []
    for name, label, seen, unseen in zip(DIMENSIONS, labels, by_talk, by_tutor, strict=True):
        simple = (_means(tutors, label, talks), _words(texts, label, talks))
        cells = [
            auc_of(seen, label, talks),
            within(seen, label, tutors, talks),
            auc_of(unseen, label, talks),
            *(auc_of(each, label, talks) for each in simple),
            within(simple[1], label, tutors, talks),
        ]
        values.append([each.value for each in cells])
        shown.add(name, *cells[:2], *(f"{each.value:.3f}" for each in cells[2:]))
    shown.add("mean", *(f"{value:.3f}" for value in np.mean(values, axis=0)))
    return shown.text()


_SIMPLE = ("mean label per tutor", "tf-idf", "tf-idf within one tutor")


def within(scores: Floats, labels: Floats, tutors: Sequence[str], groups: Sequence[str]) -> FigureInterval:
    """The mean area over tutors, weighted by their replies, with its interval over conversations."""
    names = sorted(set(tutors))
    codes = np.array([names.index(tutor) for tutor in tutors])
    return bootstrap(partial(_within, scores, labels, codes), groups, draws=DRAWS)


def _within(scores: Floats, labels: Floats, codes: NDArray[np.intp], rows: NDArray[np.intp]) -> float:
    areas, sizes = [], []
    for code in np.unique(codes):
        own = rows[codes[rows] == code]
        yes = int(labels[own].sum())
        if min(yes, len(own) - yes) >= LEAST:
            areas.append(auc(scores[own], labels[own]))
            sizes.append(len(own))
    return float(np.average(areas, weights=sizes)) if areas else float("nan")


def _means(tutors: Sequence[str], labels: Floats, groups: Sequence[str]) -> Floats:
    """The mean label of each reply's tutor in the other folds."""
    found = np.zeros(len(labels))
    for train, held_out in folds_of(groups):
        for row in held_out:
            own = [labels[each] for each in train if tutors[each] == tutors[row]]
            found[row] = float(np.mean(own)) if own else float(labels[train].mean())
    return found


def _words(texts: Sequence[str], labels: Floats, groups: Sequence[str]) -> Floats:
    """The log-odds of yes from tf-idf and a logistic regression fitted on the other folds."""
    found = np.zeros(len(labels))
    for train, held_out in folds_of(groups):
        words = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2)
        rows = words.fit_transform([texts[row] for row in train])
        head = LogisticRegression(C=3.0, max_iter=500).fit(rows, labels[train])
        found[held_out] = head.decision_function(words.transform([texts[row] for row in held_out]))
    return found


if __name__ == "__main__":
    main()
