"""Do intervals hold under shift, does doubt sort errors there, and does distance to the training rows help?

Usage: python -m benchmarks.quality.shift --data DIR [--cache DIR] [--write]

MRBench: the mean of the verdicts on a tutor's reply; asked about other dialogues of the same tutors (alike), and about
other dialogues of three tutors that were left out (shifted). CaSiNo: how satisfied a negotiator is, on five levels;
asked about other dialogues (alike), and about the longer half after learning from the shorter half (shifted). Heads and
their doubt are the product's, with one penalty of three chosen on a part of the training dialogues. `widened`
multiplies the standard deviation by the distance to the nearest training row of another dialogue, over the median of
that distance among training rows, where that is above 1. Distances are between standardised features.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.quality import data
from benchmarks.quality.figures import Floats, Indices, fold_of
from benchmarks.quality.vectors import KeptVectors
from benchmarks.report import Table, environment, write
from reward_server.encoders.loading import load_fast_encoder
from reward_server.fitting.reward_model.emphasis import learned_emphasis
from reward_server.fitting.reward_model.head_training import Recipe, fit
from reward_server.reward_models.conversation import Conversation, ConversationMessage
from reward_server.reward_models.dataset import OVERALL
from reward_server.reward_models.features import ConversationFeaturiser
from reward_server.reward_models.heads import Matrix
from reward_server.reward_models.matrices import ExampleMatrices
from reward_server.reward_models.model import with_uncertainty
from reward_server.reward_models.reliability import bootstrap, coverage, less_random, risk_coverage
from reward_server.settings import load_settings

RECIPE = Recipe(epochs=60, l2=(1.0, 10.0, 30.0))
ALIKE, SHIFTED = "alike", "shifted"
LEVEL = 0.9
MOST = 240
"""Dialogues of CaSiNo."""
SATISFIED = (
    "Extremely dissatisfied",
    "Slightly dissatisfied",
    "Undecided",
    "Slightly satisfied",
    "Extremely satisfied",
)


@dataclass(frozen=True)
class Labelled:
    """Conversations with a label in [0, 1] each."""

    conversations: Sequence[Conversation]
    labels: Floats
    groups: Sequence[str]
    others: Sequence[str]
    """Who wrote it, or how long it is: what is shifted."""


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the public sets")
    parser.add_argument("--cache", type=Path, help="folder where sentence vectors are kept between runs")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/shift.md")
    given = parser.parse_args(arguments)
    encoder = KeptVectors(load_fast_encoder(load_settings().encoder, "fp32"), given.cache, threads=1)
    featuriser = ConversationFeaturiser(encoder, remembered=200_000)
    shown = Table(
        "Labels inside the 90 % interval, and area under the risk-coverage curve by doubt (less is better)",
        [
            "set",
            "rows",
            "n",
            "90 %",
            "90 % widened",
            "AURC of doubt",
            "widened",
            "of distance alone",
            "at random",
            "best",
            "doubt less random",
        ],
    )
    for name, found in {"MRBench": mrbench(given.data / "mrbench"), "CaSiNo": casino(given.data / "casino")}.items():
        features = featuriser.features(found.conversations)
        encoder.save()
        for kind in (ALIKE, SHIFTED):
            shown.add(name, kind, *cells(*measured(featuriser, features, found, kind)))
    text = "\n\n".join(
        [environment(), "Command: `python -m benchmarks.quality.shift --data DIR --write`.", shown.text()]
    )
    print(text)
    if given.write:
        write("shift", text)


def mrbench(folder: Path) -> Labelled:
    """Replies, and the share of verdicts that speak for them."""
    replies = data.mrbench_replies(folder)
    told = "Revealing_of_the_Answer"
    labels = [np.mean([met != (name == told) for name, met in reply.met.items()]) for reply in replies]
    return Labelled(
        [reply.conversation for reply in replies],
        np.array(labels, dtype=np.float64),
        [reply.group for reply in replies],
        [reply.system for reply in replies],
    )


def casino(folder: Path) -> Labelled:
    """Negotiations from the view of their first negotiator, with how satisfied that one is."""
    rows = json.loads((folder / "casino_train.json").read_text(encoding="utf-8"))
    rows = sorted(rows, key=lambda row: fold_of(str(row["dialogue_id"]), 1 << 30))[:MOST]
    found, labels = [], []
    for row in rows:
        said = [(each["id"] == "mturk_agent_1", each["text"]) for each in row["chat_logs"]]
        found.append(
            Conversation(tuple(ConversationMessage("agent" if own else "persona", text) for own, text in said))
        )
        satisfied = row["participant_info"]["mturk_agent_1"]["outcomes"]["satisfaction"]
        labels.append(SATISFIED.index(satisfied) / (len(SATISFIED) - 1))
    lengths = [sum(len(said.text) for said in each.turns) for each in found]
    middle = float(np.median(lengths))
    groups = [str(row["dialogue_id"]) for row in rows]
    return Labelled(found, np.array(labels), groups, ["long" if length > middle else "short" for length in lengths])


def parts(found: Labelled, kind: str) -> Iterator[tuple[Indices, Indices]]:
    """Rows to learn from and rows to ask about."""
    folds = np.array([fold_of(group, 3) for group in found.groups])
    others = np.array(found.others)
    if "long" in found.others:
        if kind == SHIFTED:
            yield np.flatnonzero(others == "short"), np.flatnonzero(others == "long")
        else:
            # As many rows to learn from as above.
            half = np.array([fold_of(group, 2, "half") for group in found.groups])
            yield np.flatnonzero(half == 0), np.flatnonzero(half == 1)
        return
    names = sorted(set(found.others))
    for number in range(3):
        left_out = np.isin(others, names[number::3])
        if kind == SHIFTED:
            yield np.flatnonzero((folds != number) & ~left_out), np.flatnonzero((folds == number) & left_out)
        else:
            # As many rows to learn from as above, of all tutors.
            kept = np.array([fold_of(f"{number}/{place}", 3, "kept") != 0 for place in range(len(folds))])
            yield np.flatnonzero((folds != number) & kept), np.flatnonzero(folds == number)


def measured(
    featuriser: ConversationFeaturiser, features: Matrix, found: Labelled, kind: str
) -> tuple[Floats, list[str]]:
    """Per row that was asked about its value, label, standard deviation and relative distance; shape (n, 4).

    And the dialogue of each.
    """
    rows, dialogues = [], []
    for learned, asked in parts(found, kind):
        middle = np.array([fold_of(found.groups[place], 6, "middle") == 0 for place in learned])
        train, validation = (_examples(features, found.labels, learned[part]) for part in (~middle, middle))
        emphasis = learned_emphasis(train, featuriser.emphasis, featuriser.kinds)
        fitted = fit((OVERALL,), train, validation, RECIPE, emphasis=emphasis, costs=featuriser.costs)
        groups = [found.groups[place] for place in learned[~middle]]
        model = with_uncertainty(fitted.heads, train, validation, fitted.l2, groups=groups)
        said = model.predict(features[asked])
        if said.epistemic is None or said.noise is None:
            raise SystemExit("too few rows for a doubt")
        standard = fitted.heads.earning(features)
        standard[:, ~fitted.heads.varies] = 0.0
        own, usual = standard[learned[~middle]], np.array(groups)
        among = [_nearest(own[place], own[usual != usual[place]]) for place in range(len(own))]
        far = np.array([_nearest(standard[place], own) for place in asked]) / float(np.median(among))
        total = np.sqrt(said.epistemic**2 + said.noise**2)
        rows.append(np.column_stack([said.values[:, 0], found.labels[asked], total, far]))
        dialogues += [found.groups[place] for place in asked]
    return np.concatenate(rows), dialogues


def _nearest(row: Floats, others: Floats) -> float:
    return float(np.sqrt(((others - row) ** 2).sum(axis=1).min()))


def _examples(features: Matrix, labels: Floats, places: Indices) -> ExampleMatrices:
    nobody = np.zeros((0, features.shape[1]), np.float32)
    nothing = np.zeros(0, np.float32)
    own = labels[places].astype(np.float32)[:, None]
    return ExampleMatrices(features[places], own, nobody, nobody, nothing, nothing)


def cells(rows: Floats, dialogues: Sequence[str]) -> list[str]:
    """What the table says of them."""
    values, labels, doubt, far = rows.T
    errors = np.abs(values - labels)
    wide = doubt * np.maximum(far, 1.0)
    inside = []
    for each in (doubt, wide):
        [share] = [found.share for found in coverage(values, each, labels) if abs(found.level - LEVEL) < 1e-9]
        inside.append(f"{share.value:.3f} [{share.low:.3f}, {share.high:.3f}]")
    curves = [risk_coverage(each, errors) for each in (doubt, wide, far)]
    areas = [f"{curve.aurc:.3f}" for curve in curves]
    ahead = bootstrap(lambda drawn: less_random(doubt[drawn], errors[drawn]), dialogues)
    shown = f"{ahead.value:+.3f} [{ahead.low:+.3f}, {ahead.high:+.3f}]"
    return [str(len(rows)), *inside, *areas, f"{curves[0].random:.3f}", f"{curves[0].oracle:.3f}", shown]


if __name__ == "__main__":
    main()
