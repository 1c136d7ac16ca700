"""The proof of two processes says how long their curve is that of one, and where both end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.proofs import TwoRanks, proof_of

pytestmark = pytest.mark.slow


def written(folder: Path, name: str, rewards: list[float], kinds: list[str]) -> None:
    path = folder / name / "metrics.jsonl"
    path.parent.mkdir()
    lines = [
        {
            "kind": kind,
            "step": step,
            "reward/mean": reward,
            "reward/standard_error": 0.02,
            "fluency/broken": 0.0,
            "seconds/update": 1.0 + reward,
        }
        for step, (reward, kind) in enumerate(zip(rewards, kinds, strict=True))
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def test_two_processes_are_compared_with_one(tmp_path: Path) -> None:
    proof = proof_of("two-ranks", 3, 2)
    assert isinstance(proof, TwoRanks)
    assert "torch.distributed.run" in proof.launcher
    assert proof.compared(tmp_path) == "There is no run `grpo` of seed 3 to compare `two-ranks` with."
    kinds = ["eval", "train", "eval"]
    written(tmp_path, "grpo-2-seed-3", [0.3, 0.4, 0.5], kinds)
    written(tmp_path, "two-ranks-2-seed-3", [0.3, 0.40001, 0.50001], kinds)
    assert "Of its 3 records 3 are those of the single process" in proof.compared(tmp_path)
    assert proof.compared(tmp_path).endswith("Held-out reward at the end: 0.500 and 0.500.")


def test_where_two_curves_part_is_said(tmp_path: Path) -> None:
    proof = proof_of("two-ranks", 0, 2)
    assert isinstance(proof, TwoRanks)
    kinds = ["eval", "train", "eval"]
    written(tmp_path, "grpo-2-seed-0", [0.3, 0.4, 0.5], kinds)
    written(tmp_path, "two-ranks-2-seed-0", [0.3, 0.42, 0.52], kinds)
    told = proof.compared(tmp_path)
    assert "Of its 3 records 1 are those" in told
    assert "From update 1 on, the two curves differ" in told
    assert "0.520 and 0.500 (± 0.020)" in told
