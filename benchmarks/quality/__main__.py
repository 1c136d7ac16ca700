"""How good the judges are on data that people judged.

Usage: python -m benchmarks.quality --data DIR [--only hh,llmbar,mrbench,mts] [--cache DIR] [--write]

DIR holds the public sets hh_rlhf_harmless, llmbar, mrbench and mts_dialog (docs/quality.md names their sources); a set
that is missing is left out and said so. Sentences are encoded once and kept under --cache. With a language model in the
settings (LABS_LLM_…) its column fills.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.quality import criteria, data, disclosure, instructions, plots, preferences
from benchmarks.quality.asking import ask_about
from benchmarks.quality.vectors import KeptVectors
from benchmarks.report import RESULTS, environment, write
from reward_server.encoders.loading import load_encoder, load_fast_encoder
from reward_server.reward_models.features import ConversationFeaturiser
from reward_server.reward_models.posterior import LinearPosterior
from reward_server.settings import Settings, load_settings

SETS = {"hh": "hh_rlhf_harmless", "llmbar": "llmbar", "mrbench": "mrbench", "mts": "mts_dialog"}
COMMAND = "python -m benchmarks.quality --data DIR --write"


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the public sets")
    parser.add_argument("--only", default=",".join(SETS), help=f"some of {','.join(SETS)}")
    parser.add_argument("--cache", type=Path, help="folder where sentence vectors are kept between runs")
    parser.add_argument(
        "--write", action="store_true", help="also write benchmarks/results/quality.md and its diagrams"
    )
    given = parser.parse_args(arguments)
    wanted = [name.strip() for name in given.only.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in SETS]
    if unknown:
        parser.error(f"--only: there is no set {unknown[0]!r}; use some of {', '.join(SETS)}")
    if not given.data.is_dir():
        parser.error(f"--data: {given.data} is no folder")
    plots.draw_into(RESULTS / "quality" if given.write else None)
    text = report(given.data, wanted, given.cache, load_settings())
    print(text)
    if given.write:
        write("quality", text)


def report(folder: Path, wanted: list[str], cache: Path | None, settings: Settings) -> str:
    """The report on the sets that are wanted and there."""
    encoder = KeptVectors(load_encoder(settings.encoder), cache)
    # In fp32, so that the figures are those of every machine.
    layered = KeptVectors(load_fast_encoder(settings.encoder, "fp32"), cache)
    featuriser = ConversationFeaturiser(layered)
    transferred: list[LinearPosterior] = []

    def hh(path: Path) -> list[str]:
        tables, head = preferences.tables(featuriser, data.hh_pairs(path))
        transferred.append(head)
        return tables

    def llmbar(path: Path) -> list[str]:
        subsets = data.llmbar_pairs(path)
        head = transferred[0] if transferred else None
        return instructions.tables(featuriser, subsets, head, ask_about(subsets, settings))

    measures: dict[str, Callable[[Path], list[str]]] = {
        "hh": hh,
        "llmbar": llmbar,
        "mrbench": lambda path: criteria.tables(featuriser, data.mrbench_replies(path)),
        "mts": lambda path: disclosure.tables(encoder, data.mts_interviews(path)),
    }
    parts = [f"Command: `{COMMAND}`. Features: `{featuriser.version}`."]
    for name, place in SETS.items():
        if name not in wanted:
            continue
        path = folder / place
        if not path.is_dir():
            parts.append(f"{place}: not in the data folder, left out.")
            continue
        began = time.perf_counter()
        print(f"{name} …", file=sys.stderr)
        parts += measures[name](path)
        encoder.save()
        layered.save()
        print(f"{name}: {time.perf_counter() - began:.0f} s", file=sys.stderr)
    return "\n\n".join([environment(), *parts])


if __name__ == "__main__":
    main()
