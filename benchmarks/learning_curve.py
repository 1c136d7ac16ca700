"""Does a model learn from the reward? `learner demo` on three seeds, against a server of its own.

Usage: python -m benchmarks.learning_curve [--seeds 0 1 2] [--updates N] [--runs FOLDER] [--write]

Starts a Labs server on a free port, runs the demo once per seed, one after the other, and prints the mean
reward on held-out seeds before, half-way and after, with the time taken. `--write` puts the table and the plot
into `benchmarks/results/`. With `--runs` the runs are kept, and an interrupted benchmark goes on where it was.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.curves import draw_watched
from benchmarks.processes import ROOT, labs_server, running
from benchmarks.report import RESULTS, Table, environment, write
from learner.cli import demo_file
from learner.config import load
from learner.metrics import plot_curve, read_metrics


def main() -> None:
    """Run, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--updates", type=int, default=load(demo_file()).run.updates)
    parser.add_argument("--runs", type=Path, help="keep the runs here")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/learning_curve.*")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = arguments.runs or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        missing = [seed for seed in arguments.seeds if not is_finished(folder / f"seed-{seed}", arguments.updates)]
        if missing:
            server = labs_server(Path(name))
            with running(server):
                for seed in missing:
                    run_demo(server.url, folder / f"seed-{seed}", seed, arguments.updates)
        runs = {seed: read_metrics(folder / f"seed-{seed}" / "metrics.jsonl") for seed in arguments.seeds}
        text = f"{table(runs).text()}\n\n{language(runs).text()}\n\n{method(arguments.updates)}\n\n{environment()}"
        print(text)
        if arguments.write:
            pictures = "![held-out reward](learning_curve.png)\n\n![what else was watched](learning_curve_watched.png)"
            write("learning_curve", f"{text}\n\n{pictures}")
            curves = {f"seed {seed}": records for seed, records in runs.items()}
            plot_curve(curves, RESULTS / "learning_curve.png", "learner demo: held-out reward")
            draw_watched({name: [records] for name, records in curves.items()}, RESULTS / "learning_curve_watched.png")


def is_finished(folder: Path, updates: int) -> bool:
    """True if the last evaluation of a run is there."""
    records = read_metrics(folder / "metrics.jsonl")
    return any(record["kind"] == "eval" and record["step"] >= updates for record in records)


def run_demo(url: str, folder: Path, seed: int, updates: int) -> None:
    """One run, in a process of its own; its lines are shown as they come."""
    arguments = ["demo", "--url", url, "--seed", str(seed), "--updates", str(updates), "--out", str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    started = time.monotonic()
    subprocess.run([sys.executable, "-m", "learner", *arguments], check=True, cwd=ROOT, env=environment)
    print(f"seed {seed}: {time.monotonic() - started:.0f} s\n", flush=True)


def table(runs: dict[int, list[dict[str, Any]]]) -> Table:
    """Held-out reward of each seed."""
    result = Table(
        "Mean reward on held-out seeds (± standard error)",
        ["seed", "before", "half-way", "after", "episodes trained on", "errored", "minutes"],
    )
    for seed, records in runs.items():
        held_out = [record for record in records if record["kind"] == "eval"]
        training = [record for record in records if record["kind"] == "train"]
        seconds = sum(record["seconds/rollout"] + record.get("seconds/update", 0.0) for record in records)
        result.add(
            seed,
            *(_reward(held_out[place]) for place in (0, len(held_out) // 2, -1)),
            sum(record["episodes/scored"] for record in training),
            sum(record["episodes/errored"] for record in records),
            f"{seconds / 60:.1f}",
        )
    return result


def language(runs: dict[int, list[dict[str, Any]]]) -> Table:
    """Whether what earns the reward is still language."""
    result = Table(
        "The language of the same turns, before and after",
        ["seed", "nats per token under the reference policy", "broken turns", "repeated turns", "KL in training"],
    )
    for seed, records in runs.items():
        held_out = [record for record in records if record["kind"] == "eval"]
        kl = [record["update/kl_reference"] for record in records if "update/kl_reference" in record]
        first, last = held_out[0], held_out[-1]
        result.add(
            seed,
            f"{first['fluency/reference_nll']:.2f} → {last['fluency/reference_nll']:.2f}",
            *(f"{first[name]:.1%} → {last[name]:.1%}" for name in ("fluency/broken", "fluency/repeated")),
            f"{kl[0]:.3f} → {kl[-1]:.3f}",
        )
    return result


def method(updates: int) -> str:
    """How it was measured."""
    config = load(demo_file())
    server, model, rollout = config.server, config.model, config.rollout
    return (
        f"`learner demo` with {updates} updates on"
        f" `{server.collection}/{server.scenario}`: a transformer of {model.layers} layers, width"
        f" {model.width}, warmed up on scripted dialogues, then {config.algorithm.name} with {rollout.groups} groups of"
        f" {rollout.group_size} episodes per update. Held-out reward is the mean over {config.evaluation.episodes}"
        f" seeds that are never trained on, sampled at temperature {model.temperature:g}. Minutes are those of rollouts"
        " and updates, server and learner sharing the cores; warm-up and start are not in them."
    )


def _reward(record: dict[str, Any]) -> str:
    return f"{record['reward/mean']:.3f} ± {record['reward/standard_error']:.3f}"


if __name__ == "__main__":
    main()
