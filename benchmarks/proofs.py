"""The runs of `proof_runs`: presets of the learner, from the server's preferences, killed, and on two processes."""

from __future__ import annotations

import asyncio
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.processes import ROOT
from learner import checkpoint, config, loop, offline
from learner.conversations import pair_of
from learner.metrics import read_metrics
from learner.models import load
from learner.presets import preset_file
from learner.rows import RowError
from learner.run import Run, open_run
from trainer_client import AsyncLabsClient
from trainer_client.chat.dialogue import ChatError

KINDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "grpo": ("grpo", ()),
    "gspo": ("gspo", ()),
    "dapo": ("dapo", ()),
    "vapo": ("vapo", ()),
    "ppo": ("ppo", ()),
    "qwen": ("grpo", ("model.family=qwen",)),
    "gemma": ("grpo", ("model.family=gemma", "optim.learning_rate=5e-4")),
    "single-turn": ("single-turn", ()),
    "dpo": (
        "grpo",
        (
            "algorithm.name=dpo",
            "algorithm.overrides={positive_nll=1.0}",
            "optim.learning_rate=3e-4",
            "evaluation.every=20",
        ),
    ),
    "dpo-plain": (
        "grpo",
        ("algorithm.name=dpo", "algorithm.overrides={}", "optim.learning_rate=3e-4", "evaluation.every=20"),
    ),
    "resumed": ("grpo", ("run.checkpoint_every=2",)),
    "two-ranks": ("grpo", ()),
}
"""Name of a kind of run: preset, and what is changed in it."""
ALONE = ("dpo", "dpo-plain", "resumed", "two-ranks")
"""Made only where they are asked for."""
KILLED_IN = 4
RESUMED_UPDATES = 5
DPO_UPDATES = 40
PAIRS_SEEDS, PAIRS_GROUP = 48, 8
"""Episodes that preferences are made of: so many seeds, so many episodes each."""
PAIRS_NOISE = 7
LEAST_MARGIN = 0.05


@dataclass(frozen=True)
class Proof:
    """One run."""

    kind: str
    seed: int
    updates: int

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"{self.kind}-{self.updates}-seed-{self.seed}"

    @property
    def launcher(self) -> tuple[str, ...]:
        """What Python is started with."""
        return ("-m", "learner")

    @property
    def changes(self) -> list[str]:
        """What is changed in the preset."""
        beside = [f"run.seed={self.seed}", f"run.updates={self.updates}", "evaluation.samples=3"]
        return [*KINDS[self.kind][1], *beside]

    def play(self, url: str, folder: Path) -> None:
        """Play it in a process of its own, or go on with it."""
        if self._start(url, folder).wait():
            raise RuntimeError(f"{self.name} ended early; see {folder / self.name}.log")

    def _start(self, url: str, folder: Path) -> subprocess.Popen[bytes]:
        arguments = [*self.launcher, "train", KINDS[self.kind][0], "--url", url, "--out", str(folder / self.name)]
        arguments += [part for change in self.changes for part in ("--set", change)]
        variables = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
        with (folder / f"{self.name}.log").open("a") as log:
            return subprocess.Popen([sys.executable, *arguments], cwd=ROOT, env=variables, stdout=log, stderr=log)

    def records(self, folder: Path) -> list[dict[str, Any]]:
        """Its metrics so far."""
        return read_metrics(folder / self.name / "metrics.jsonl")

    def samples(self, folder: Path) -> list[Path]:
        """The dialogues that it keeps, of the first and of the last evaluation."""
        found = sorted((folder / self.name / "samples").glob("update-*.txt"))
        return [found[0], found[-1]]

    def is_finished(self, folder: Path) -> bool:
        """True if the last evaluation by reward is there."""
        return any(record["step"] >= self.updates for record in self.records(folder) if "fluency/broken" in record)


class Resumed(Proof):
    """A run that is killed, without a chance to tidy up, and goes on from its checkpoint."""

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"{self.kind}-seed-{self.seed}"

    def play(self, url: str, folder: Path) -> None:
        """Play it; the first time, kill it in an update."""
        killed = folder / f"{self.name}.killed"
        if not killed.exists():
            process = self._start(url, folder)
            while process.poll() is None and self._step(folder) < KILLED_IN - 1:
                time.sleep(0.2)
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed.touch()
        super().play(url, folder)

    def _step(self, folder: Path) -> int:
        return max((record["step"] for record in self.records(folder)), default=0)

    def compared(self, folder: Path) -> str:
        """With the run that nobody killed: every figure but times, and every weight."""
        whole = next(iter(sorted(folder.glob(f"grpo-*-seed-{self.seed}"))), None)
        if whole is None:
            return f"There is no run `grpo` of seed {self.seed} to compare `resumed` with."
        records = [_plain(each) for each in self.records(folder)]
        others = [_plain(each) for each in read_metrics(whole / "metrics.jsonl") if each["step"] <= self.updates]
        same = sum(mine == other for mine, other in zip(records, others, strict=False))
        ours, theirs = (_weights(path, self.updates) for path in (folder / self.name, whole))
        equal = theirs.keys() == ours.keys() and all(torch.equal(value, ours[name]) for name, value in theirs.items())
        return (
            f"`resumed`, seed {self.seed}, was ended by SIGKILL in update {KILLED_IN} and went on from the checkpoint"
            f" of update 2. Of its {len(records)} records {same} are those of the run that was not interrupted"
            f" ({len(others)} up to update {self.updates}), every figure but the times; its weights after update"
            f" {self.updates} are {'the same, bit for bit' if equal else 'not the same'}."
        )


class TwoRanks(Proof):
    """Two processes that play half of the groups each and share every update, over gloo."""

    @property
    def launcher(self) -> tuple[str, ...]:
        """`torchrun`, which the learner does not notice but by its variables."""
        return ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "-m", "learner")

    def compared(self, folder: Path) -> str:
        """With the single process of the same seed: how long the curve is the same, and where both end."""
        alone = Proof("grpo", self.seed, self.updates)
        if not alone.is_finished(folder):
            return f"There is no run `grpo` of seed {self.seed} to compare `two-ranks` with."
        mine, others = ([_plain(each) for each in proof.records(folder)] for proof in (self, alone))
        same = 0
        while same < len(mine) and _alike(mine[same], others[same]):
            same += 1
        ends = " and ".join(f"{records[-1]['reward/mean']:.3f}" for records in (mine, others))
        told = (
            f"`two-ranks`, seed {self.seed}: `grpo` by two processes with gloo, each with half of the groups. Of its"
            f" {len(mine)} records {same} are those of the single process, every figure but the times within .1 %."
        )
        if same == len(mine):
            return f"{told} Held-out reward at the end: {ends}."
        return (
            f"{told} From {_where(mine[same])} on, the two curves differ: halves of a gradient add up to other last"
            f" digits, and a token that is drawn otherwise makes another conversation. Held-out reward at the end:"
            f" {ends} (± {mine[-1]['reward/standard_error']:.3f})."
        )


class Preferences(Proof):
    """DPO on pairs that the server exports of episodes of the model that was warmed up."""

    def play(self, url: str, folder: Path) -> None:
        """Play, export, learn, and evaluate by reward before and after; an interrupted one begins again."""
        shutil.rmtree(folder / self.name, ignore_errors=True)
        pairs = folder / f"{self.name}.jsonl"
        beside = [*self.changes, f'data.file="{pairs}"', "data.held_out_share=0.1"]
        run = open_run(config.load(preset_file("grpo"), beside), folder / self.name, print)
        asyncio.run(self._evaluate(url, run))
        lines = asyncio.run(self._pairs(url, run))
        usable = [line for line in lines if _can_be_written(line, run)]
        pairs.write_text("".join(f"{line}\n" for line in usable))
        print(f"{len(usable)} of {len(lines)} pairs of {PAIRS_SEEDS * PAIRS_GROUP} episodes", flush=True)
        offline.train(run, print)
        asyncio.run(self._evaluate(url, run))
        run.metrics.close()

    async def _evaluate(self, url: str, run: Run) -> None:
        async with AsyncLabsClient(url, max_connections=run.config.rollout.connections) as client:
            await loop.evaluate(run, client, run.rollouts(client), print)

    async def _pairs(self, url: str, run: Run) -> list[str]:
        """Play, and what the server exports of it."""
        first = (self.seed + 1) * 10_000
        seeds = range(first, first + PAIRS_SEEDS)
        async with AsyncLabsClient(url, max_connections=run.config.rollout.connections) as client:
            collected = await run.rollouts(client).collect(seeds, PAIRS_GROUP, (self.seed, PAIRS_NOISE))
            run.metrics.write("play", 0, loop.summary(collected))
            found = await client.export_preferences("trl", source="episodes", min_margin=LEAST_MARGIN)
        # Other runs may have played on the same server.
        return [line for line in found.text.splitlines() if _seed_of(line) in seeds]


def proof_of(kind: str, seed: int, updates: int) -> Proof:
    """The run of a kind."""
    if kind == "resumed":
        return Resumed(kind, seed, RESUMED_UPDATES)
    if kind == "two-ranks":
        return TwoRanks(kind, seed, updates)
    if kind in ("dpo", "dpo-plain"):
        return Preferences(kind, seed, DPO_UPDATES)
    return Proof(kind, seed, updates)


def _seed_of(line: str) -> int:
    seed: int = json.loads(line)["provenance"]["seed"]
    return seed


def _can_be_written(line: str, run: Run) -> bool:
    """True if the tiny model's words spell both sides: two of them, said without a space, make one it does not have."""
    try:
        pair_of(json.loads(line), run.renderer, run.tokenizer)
    except (RowError, ChatError):
        return False
    return True


def _plain(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if not name.startswith(("seconds/", "memory/"))}


def _alike(mine: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """The same figures, but for rounding."""
    return mine.keys() == other.keys() and all(
        math.isclose(value, other[name], rel_tol=1e-3, abs_tol=1e-4)
        if isinstance(value, float)
        else value == other[name]
        for name, value in mine.items()
    )


def _where(record: Mapping[str, Any]) -> str:
    kind = "the evaluation after update" if record["kind"] == "eval" else "update"
    return f"{kind} {record['step']}"


def _weights(run: Path, step: int) -> Mapping[str, torch.Tensor]:
    found = checkpoint.at(run / "checkpoints", step)
    return {} if found is None else load(str(found.model_path))[0].state_dict()
