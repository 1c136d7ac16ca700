"""Does fine-tuning the encoder help? What `labs reward-model train --unfreeze` decides on human preferences.

Usage: python -m benchmarks.unfreezing DATA [--pairs 250] [--write]

DATA is a folder with the public set hh_rlhf_harmless (pairs.jsonl.gz; docs/quality.md names its source). The first
`--pairs` pairs go through the product's own training: heads on the frozen encoder, heads on the tuned one, both
measured on the same held-out dialogues beside the simple baselines, and kept as the product keeps them. CPU times are
those of the process: the heads alone, and what `--unfreeze` adds. 250 pairs take minutes, all 1,866 more than an hour.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.report import Table, environment, write
from reward_server.fitting.reward_model.read import Reading, read_dataset
from reward_server.fitting.reward_model.train import Task, Tools, Trained, train
from reward_server.reward_models.dataset import Dataset
from reward_server.reward_models.feature_shelf import FeatureShelf
from reward_server.reward_models.features import ConversationFeaturiser
from reward_server.reward_models.featurisers import Featurisers
from reward_server.reward_models.finetune import Tuning
from reward_server.reward_models.plain_features import PlainFeatures
from reward_server.settings import load_settings

SET = "hh_rlhf_harmless"
PAIRS = 250


@dataclass
class Clock:
    """CPU time of the process when each stage of the training was last heard of."""

    started: float = field(default_factory=time.process_time)
    heard: dict[str, float] = field(default_factory=dict)

    def note(self, stage: str, done: int, total: int) -> None:
        """Remember it, and tell whoever waits."""
        self.heard[stage] = time.process_time()
        if stage == "fine-tuning":
            print(f"{stage}: {done} of {total}", flush=True)

    def extra(self) -> float:
        """What came after the heads on the frozen encoder, relative to what came before."""
        heads = self.heard["training"]
        return (time.process_time() - heads) / max(heads - self.started, 1e-9)


def main() -> None:
    """Train both, print what was decided."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--pairs", type=int, default=PAIRS, help="how many, from the first on")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/unfreezing.md")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        clock = Clock()
        made = trained(first_pairs(arguments.data, arguments.pairs, Path(name)), Path(name), clock)
        text = report(made, clock.extra())
    print(text)
    if arguments.write:
        write("unfreezing", text)


def first_pairs(data: Path, count: int, folder: Path) -> Dataset:
    """The first pairs of the set, read as the command reads them."""
    rows = folder / "pairs.jsonl"
    with gzip.open(data / SET / "pairs.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows.write_text("".join(itertools.islice(lines, count)), encoding="utf-8")
    return read_dataset(rows, Reading())


def trained(dataset: Dataset, folder: Path, clock: Clock, tuning: Tuning | None = None) -> Trained:
    """What the command trains with `--unfreeze` and nothing else."""
    settings = load_settings()
    featurisers = Featurisers(settings.encoder, precision=settings.encoder_precision)
    tools = Tools(
        featurisers.base,
        PlainFeatures(featurisers.encoder),
        featurisers.encoder.version,
        FeatureShelf(folder / "features"),
        featuriser_on=ConversationFeaturiser,
        precision=settings.encoder_precision,
    )
    task = Task(folder / "model", settings.encoder, datetime.now(UTC), tuning=tuning or Tuning())
    return train(dataset, task, tools, clock.note)


def report(made: Trained, extra: float) -> str:
    """The table, the decision, where it was measured."""
    card = made.card
    found, split = card.finetuning, card.split
    table = Table(
        f"Pairs of {SET} in the right order, {split['held_out']} held out of {card.data.pairs}",
        ["judge", "in the right order", "times length"],
    )
    simple = {name: figures["pairwise"] for name, figures in card.baselines["metrics"].items()}
    length = simple["length"]["value"]
    for name, figure in simple.items():
        table.add(f"{name}, the way the training pairs point", _figure(figure), f"{figure['value'] / length:.2f}")
    for name in ("frozen", "tuned"):
        shown = card.metrics["pairs"]["pairwise"] if found["kept"] == name else {"value": found[name]}
        table.add(f"heads on the {name} encoder", _figure(shown), f"{found[name] / length:.2f}")
    table.add("tuned minus frozen", _figure(found["difference"]), "")
    lines = [
        f"Trained on {split['train']} pairs, settings chosen on {split['validation']}; 95 % intervals from whole "
        "dialogues. The tuned encoder is kept where the whole interval of the difference is above 0.",
        table.text(),
        f"Kept: {found['kept']}. Fine-tuning took {extra:.0f} times the CPU time of the heads on the frozen encoder.",
        environment(),
    ]
    return "\n\n".join(lines)


def _figure(found: Mapping[str, Any]) -> str:
    between = f" [{found['low']:.3f}, {found['high']:.3f}]" if "low" in found else ""
    return f"{found['value']:.3f}{between}"


if __name__ == "__main__":
    main()
