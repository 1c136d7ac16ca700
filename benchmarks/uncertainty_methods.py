"""How the two ways to know a reward model's doubt compare: last-layer posterior and ensemble, on generated dialogues.

Usage: python -m benchmarks.uncertainty_methods [--dialogues 80] [--seeds 0 1] [--write]

Rows of a dialogue share an opening and an offset of their labels, as raters differ; labels follow how considerate the
agent's sentences are, with noise. Both models have the same heads and the same values: only the doubt differs.
`elsewhere` is the doubt about conversations unlike any that was trained on: no more than the spread of the labels.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from benchmarks.report import Table, environment, write
from benchmarks.synthetic import conversations
from reward_server.encoders.loading import load_fast_encoder
from reward_server.fitting.reward_model.head_training import Recipe
from reward_server.fitting.reward_model.train import Task, Tools, Trained, Uncertainty, train
from reward_server.reward_models.conversation import Conversation, Said
from reward_server.reward_models.dataset import OVERALL, Dataset, Labelled
from reward_server.reward_models.feature_shelf import FeatureShelf
from reward_server.reward_models.features import ConversationFeaturiser
from reward_server.reward_models.plain_features import PlainFeatures

METHODS: tuple[Uncertainty, ...] = ("bayesian", "ensemble")
CONSIDERATE = (
    "I am sorry to hear that; when did it start?",
    "Thank you for telling me, that helps a lot.",
    "Would a refund or a new one suit you better?",
    "Let me check that with you, step by step.",
    "You did nothing wrong, this happens to many people.",
    "May I ask what you have tried so far?",
)
CURT = (
    "Read the manual.",
    "That is not my department.",
    "It works for everybody else.",
    "You should have thought of that before.",
    "Just send it back.",
    "There is nothing to be done.",
)
THINGS = ("kettle", "bicycle", "invoice", "router", "lamp", "heater", "printer", "ticket", "parcel", "phone")


def main() -> None:
    """Train both ways on each seed, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dialogues", type=int, default=80)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/uncertainty_methods.md")
    arguments = parser.parse_args()
    encoder = load_fast_encoder()
    featuriser = ConversationFeaturiser(encoder)
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as name:
        tools = Tools(featuriser, PlainFeatures(encoder), encoder.version, FeatureShelf(Path(name) / "cache"))
        for seed in arguments.seeds:
            data = dialogues(arguments.dialogues, seed)
            far = featuriser.features([_elsewhere(each) for each in conversations(40, seed)])
            for method in METHODS:
                task = Task(
                    Path(name) / f"{method}-{seed}",
                    "packaged",
                    datetime.now(UTC),
                    recipe=Recipe(seed=seed),
                    held_out=0.3,
                    uncertainty=method,
                    keep_uncertainty=True,
                )
                made = train(data, task, tools, lambda stage, done, total: None)
                rows.append(_row(method, seed, made, far))
    head = ["seed", "doubt by", "in 80 %", "in 95 %", "AURC (random, best)"]
    head += ["epistemic", "elsewhere", "noise", "CPU ms a row"]
    table = Table(f"{arguments.dialogues} dialogues of four rows, 30 % held out", head, rows)
    text = f"{table.text()}\n\n{environment()}"
    print(text)
    if arguments.write:
        write("uncertainty_methods", text)


def dialogues(count: int, seed: int) -> Dataset:
    """`count` dialogues of four rows."""
    source = random.Random(seed)
    rows: list[Labelled] = []
    for number in range(count):
        thing, offset = source.choice(THINGS), source.gauss(0.0, 0.08)
        for _ in range(4):
            turns = [Said("persona", f"Hello, my {thing} number {number} is broken.")]
            good = 0
            for _ in range(3):
                kind = source.random() < 0.5
                good += kind
                turns.append(Said("agent", source.choice(CONSIDERATE if kind else CURT)))
                turns.append(Said("persona", source.choice(("Well.", "I see.", "And now?"))))
            label = min(1.0, max(0.0, 0.15 + 0.7 * good / 3 + offset + source.gauss(0.0, 0.08)))
            rows.append(Labelled(Conversation(tuple(turns)), {OVERALL: label}, f"dialogue {number}", len(rows) + 1))
    return Dataset(tuple(rows))


def _elsewhere(messages: Sequence[dict[str, str]]) -> Conversation:
    return Conversation(
        tuple(Said("persona" if each["role"] == "user" else "agent", each["content"]) for each in messages)
    )


def _row(method: str, seed: int, made: Trained, far: np.ndarray) -> list[str]:
    found = made.card.uncertainty
    doubt, cost = None, np.inf
    for _ in range(5):
        started = time.process_time()
        doubt = made.attempt.model.predict(far).epistemic
        cost = min(cost, (time.process_time() - started) / len(far))
    area = found["aurc"]
    return [
        str(seed),
        method,
        *(_share(found["coverage"][level]) for level in ("0.8", "0.95")),
        f"{area['aurc']:.3f} ({area['random']:.3f}, {area['oracle']:.3f})",
        f"{found['epistemic_std']:.3f}",
        "–" if doubt is None else f"{float(doubt.mean()):.3f}",
        f"{found['noise_std']:.3f}",
        f"{1000 * cost:.1f}",
    ]


def _share(figure: dict[str, float]) -> str:
    return f"{figure['value']:.2f} [{figure['low']:.2f}, {figure['high']:.2f}]"


if __name__ == "__main__":
    main()
