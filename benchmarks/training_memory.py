"""What memory does the training of a reward model take, by the number of rows?

Usage: python -m benchmarks.training_memory [--rows 5000 20000 100000] [--epochs 1] [--write]

Each number of rows is one `labs reward-model train` in a process and a data folder of its own, on generated preference
pairs: a request and two replies of a sentence each, of which the better one says thanks. Memory is the process's
largest resident set. Everything is as the command does it, but for the epochs: memory does not depend on them, and
time does. Requests and replies are drawn from a fixed stock, so that with many rows most are encoded once.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import ROOT
from benchmarks.report import Table, environment, write
from benchmarks.synthetic import WORDS

STOCK = 4000
"""Different requests, and as many different replies."""
PAIRS_OF_A_REQUEST = 4
UNITS_OF_MAXRSS = 1024 if sys.platform != "darwin" else 1


@dataclass(frozen=True)
class Taken:
    """What one training took."""

    rows: int
    peak_bytes: int
    seconds: float
    cpu_seconds: float
    disk_bytes: int
    """Files of the data folder afterwards: nearly all are features that the next training finds."""


def main() -> None:
    """Train on each number of rows and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[5000, 20_000])
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/training_memory.md")
    given = parser.parse_args()
    found = []
    for rows in given.rows:
        found.append(trained(rows, given.epochs))
        print(found[-1], flush=True)
    text = report(found, given.epochs)
    print(text)
    if given.write:
        write("training_memory", text)


def pairs(count: int, seed: int = 0) -> Iterator[dict[str, object]]:
    """Rows as `train` reads them."""
    source = random.Random(seed)
    requests = [f"{_said(source, 8)}?" for _ in range(STOCK)]
    replies = [f"{_said(source, 12)}." for _ in range(STOCK)]
    for number in range(count):
        better, worse = sorted(source.sample(range(STOCK), 2), reverse=True)
        yield {
            "prompt": requests[number // PAIRS_OF_A_REQUEST % STOCK],
            "chosen": [{"role": "assistant", "content": f"Thanks, {replies[better]}"}],
            "rejected": [{"role": "assistant", "content": replies[worse]}],
            "group": f"dialogue {number // PAIRS_OF_A_REQUEST}",
        }


def _said(source: random.Random, words: int) -> str:
    return " ".join(source.choices(WORDS, k=words))


def trained(rows: int, epochs: int) -> Taken:
    """One training by the command, in a process of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = folder / "pairs.jsonl"
        with data.open("w") as file:
            file.writelines(f"{json.dumps(pair)}\n" for pair in pairs(rows))
        command = [sys.executable, "-m", "reward_server.cli.start", "reward-model", "train", str(data)]
        command += ["--out", str(folder / "model"), "--data", str(folder / "data"), "--epochs", str(epochs)]
        started = time.monotonic()
        process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - started
        if process.returncode:
            raise SystemExit(f"training on {rows} rows failed with {process.returncode}")
        disk = sum(path.stat().st_size for path in (folder / "data").rglob("*") if path.is_file())
    peak = used.ru_maxrss * UNITS_OF_MAXRSS
    return Taken(rows, peak, seconds, used.ru_utime + used.ru_stime, disk)


def report(found: list[Taken], epochs: int) -> str:
    """The table, and how it was measured."""
    table = Table(
        f"Training on pairs of one-sentence replies, --epochs {epochs}",
        ["rows", "peak memory", "minutes", "CPU minutes", "features kept on disk"],
    )
    for each in found:
        table.add(
            f"{each.rows:,}",
            f"{each.peak_bytes / 1e9:.2f} GB",
            f"{each.seconds / 60:.1f}",
            f"{each.cpu_seconds / 60:.1f}",
            f"{each.disk_bytes / 1e9:.1f} GB",
        )
    sizes = " ".join(str(each.rows) for each in found)
    command = f"Command: `python -m benchmarks.training_memory --rows {sizes} --epochs {epochs} --write`."
    return "\n\n".join([environment(), command, table.text()])


if __name__ == "__main__":
    main()
