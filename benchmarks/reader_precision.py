"""What changes if the reader computes in int8, and on another kind of processor: labelled turns understood differently.

Usage: python -m benchmarks.reader_precision [--turns FOLDER] [--write]

The held-out turns of the package, and those of `--turns` (`<collection>__<scenario>.jsonl`), are read after the
persona's opening, in four processes: in fp32 and in int8, with torch's kernels for this processor and with those for
AVX2 (the environment variable ATEN_CPU_CAPABILITY; products of matrices stay those of this processor). Understood
differently is a turn with other questions, commitments or another "off topic". `--turns` are turns from outside, and
are also measured as `benchmarks.reader` does.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from benchmarks.report import Table, environment, write
from reward_server.fitting.reader.dataset import ReaderRow, after_opening, packaged_turns, turns_of_file
from reward_server.fitting.reader.evaluate import TurnPrediction, measured, predict
from reward_server.reader.build import local_reader
from reward_server.reader.encoder import ReaderPrecision
from reward_server.server.engine import load_scenarios
from scenarios.lint import COLLECTIONS

KERNELS = {"this processor's": {}, "AVX2": {"ATEN_CPU_CAPABILITY": "avx2"}}
PRECISIONS = get_args(ReaderPrecision)
SHOWN = ("specific understood", "specific wrong", "double, per fact", "foreign opened", "commitment heard")


def main() -> None:
    """Print the tables, and keep them if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=Path, help="folder of <collection>__<scenario>.jsonl that nobody trained on")
    parser.add_argument("--write", action="store_true", help="keep them in benchmarks/results/reader_precision.md")
    parser.add_argument("--read", choices=PRECISIONS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.read:
        print(json.dumps(read(arguments.read, arguments.turns)))
        return
    text = "\n\n".join([*(table.text() for table in tables(arguments.turns)), environment()])
    print(text)
    if arguments.write:
        write("reader_precision", text)


def tables(folder: Path | None) -> list[Table]:
    """Of understanding, and of differences."""
    found = {(p, k): in_process(p, variables, folder) for k, variables in KERNELS.items() for p in PRECISIONS}
    sets = list(next(iter(found.values()))["shares"])
    parts = [understanding(name, found) for name in sets]
    fp32, int8 = (tuple((p, k) for k in KERNELS) for p in ("fp32", "int8"))
    total = len(found[fp32[0]]["understood"])
    table = Table(f"{total} turns: understood differently", ["", "turns", "share"])
    for what, (one, other) in {
        "fp32, with kernels for AVX2": fp32,
        "int8, with kernels for AVX2": int8,
        "int8 instead of fp32": (fp32[0], int8[0]),
    }.items():
        pairs = zip(found[one]["understood"], found[other]["understood"], strict=True)
        count = sum(before != after for before, after in pairs)
        table.add(what, count, f"{count / total:.1%}")
    return [*parts, table]


def understanding(name: str, found: dict[tuple[str, str], dict[str, dict[str, dict[str, str]]]]) -> Table:
    """One set of turns, read in each way with this processor's kernels."""
    table = Table(name, ["", *SHOWN])
    for precision in PRECISIONS:
        shares = found[precision, next(iter(KERNELS))]["shares"][name]
        table.add(precision, *(shares[each] for each in SHOWN))
    return table


def in_process(precision: str, variables: dict[str, str], folder: Path | None) -> dict[str, dict[str, dict[str, str]]]:
    """What `read` gives in a process of its own: kernels are chosen once in its life."""
    command = [sys.executable, "-m", "benchmarks.reader_precision", "--read", precision]
    command += ["--turns", str(folder)] if folder else []
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=True)
    answer: dict[str, dict[str, dict[str, str]]] = json.loads(done.stdout)
    return answer


def read(precision: ReaderPrecision, folder: Path | None) -> dict[str, object]:
    """Per set its measures, and of every turn what was understood."""
    library = load_scenarios(None)
    sets: dict[str, Sequence[ReaderRow]] = {
        "held-out turns of the package": [row for row in packaged_turns(COLLECTIONS, library) if row.turn.kept_aside]
    }
    if folder:
        outside = [row for path in sorted(folder.glob("*.jsonl")) for row in turns_of_file(path, library)]
        sets["turns from outside"] = outside
    reader = local_reader(precision=precision)
    found = {name: predict(library, reader, after_opening(library, rows)) for name, rows in sets.items()}
    return {
        "shares": {name: shares(each) for name, each in found.items()},
        "understood": [
            [sorted(one.asks), sorted(one.commits), one.off_topic] for each in found.values() for one in each
        ],
    }


def shares(found: Sequence[TurnPrediction]) -> dict[str, str]:
    """Each measure, as a share of how many."""
    return {name: f"{each.hits / each.of:.0%} of {each.of}" for name, each in measured(found).items() if each.of}


if __name__ == "__main__":
    main()
