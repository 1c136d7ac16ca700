"""Update and generation on one GPU: tokens/s, MFU, memory, and the update beside TRL's. Started by `gpu.sh`.

    sh benchmarks/gpu.sh

A model of Qwen3-0.6B's shape with random weights, bf16 products, 64 episodes in groups of 8 that share a prompt of
1,024 tokens. MFU counts 6 x parameters x tokens that were computed, against a product of 8192 x 8192 in bf16 measured
in the same run: what the machine can do, and not what its maker says. **Never run so far: it has no results yet.**
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.learner_update_speed import theirs, updater_of
from benchmarks.report import Table
from learner.generate.hf import HfGenerator
from learner.generate.session import Continuation
from learner.model import Policy
from learner.packing import packed_size
from learner.types import Group, Segment, Trajectory

VOCABULARY, PROMPT, GROUPS, MEMBERS, NEW, LIVE = 151_936, 1024, 8, 8, 512, 64


def qwen_shape() -> Any:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=1024,
        intermediate_size=3072,
        num_hidden_layers=28,
        num_attention_heads=16,
        num_key_value_heads=8,
        head_dim=128,
        tie_word_embeddings=True,
        eos_token_id=0,
        pad_token_id=1,
        bos_token_id=None,
    )
    with torch.device("cuda"):
        return Qwen3ForCausalLM(config)


def episodes() -> list[Group]:
    draw = random.Random(0)

    def tokens(count: int) -> tuple[int, ...]:
        return tuple(draw.randrange(2, VOCABULARY) for _ in range(count))

    groups = []
    for seed in range(GROUPS):
        opening = Segment(tokens(PROMPT))
        spoken = [
            Segment(tokens(count), (-1.0,) * count) for count in (draw.randrange(NEW // 2, NEW) for _ in range(MEMBERS))
        ]
        groups.append(Group(seed, tuple(Trajectory((opening, each), (draw.random(),), seed) for each in spoken)))
    return groups


def seconds(step: Callable[[], object], rounds: int = 3) -> float:
    """The shortest of some rounds, after one to warm up."""
    found = []
    for _ in range(rounds + 1):
        torch.cuda.synchronize()
        started = time.perf_counter()
        step()
        torch.cuda.synchronize()
        found.append(time.perf_counter() - started)
    return min(found[1:])


def ceiling() -> float:
    """Operations a second of a large product in bf16."""
    one = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    return 2 * 8192**3 / seconds(lambda: one @ one, 10)


def update_row(name: str, model: Any, step: Callable[[], None], tokens: int, sampled: int, most: float) -> list[str]:
    torch.cuda.reset_peak_memory_stats()

    def whole() -> None:
        model.zero_grad(set_to_none=True)
        step()

    took = seconds(whole)
    work = 6 * sum(each.numel() for each in model.parameters()) * tokens / took
    memory = torch.cuda.max_memory_allocated() / 2**30
    return [
        name,
        f"{took:.2f}",
        f"{tokens / took:,.0f}",
        f"{sampled / took:,.0f}",
        f"{work / most:.0%}",
        f"{memory:.1f}",
    ]


def generated(policy: Policy) -> float:
    """Sampled tokens a second of 64 conversations in one batch."""
    draw = np.random.default_rng(0)
    policy.banned = torch.tensor([0], device="cuda")  # nobody stops early
    given = {
        n: Continuation(draw.integers(2, VOCABULARY, 256).tolist(), np.random.SeedSequence([n])) for n in range(LIVE)
    }
    took = seconds(lambda: HfGenerator(policy, max_tokens=128).start().step(given), 2)
    return LIVE * 128 / took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    most, groups = ceiling(), episodes()
    rows = [row for group in groups for trajectory in group.trajectories for row in trajectory.rows]
    raw = sum(len(segment.ids) for row in rows for segment in row)
    sampled = sum(trajectory.sampled_tokens for group in groups for trajectory in group.trajectories)
    head = ["way", "seconds", "tokens computed a second", "sampled tokens a second", "MFU", "GiB at most"]
    table = Table(f"Forward and backward of {len(rows)} episodes, {raw:,} tokens, {sampled:,} sampled", head)
    model = qwen_shape().eval()
    policy = Policy(model, end_id=0, autocast=torch.bfloat16)
    updater = updater_of(policy, 32_768)
    if policy.packs:
        table.add(*update_row("packed", model, lambda: updater.gradients(groups), packed_size(rows), sampled, most))
    padded = updater_of(Policy(model, end_id=0, autocast=torch.bfloat16, packs=False), 32_768)
    table.add(*update_row("padded", model, lambda: padded.gradients(groups), raw, sampled, most))
    speed = generated(policy)
    advantages = torch.tensor([row[-1] for row in updater.credit.per_turn(groups, {})], dtype=torch.float32)
    try:
        from trl.trainer.utils import add_fused_lm_head

        add_fused_lm_head(model, outputs=("log_probs", "entropy"))
        trl = theirs(model, groups, advantages, device="cuda", prompt=PROMPT)
        width = max(len(trajectory.ids) for group in groups for trajectory in group.trajectories)
        table.add(*update_row("TRL 1.16", model, trl, width * len(rows), sampled, most))
    except torch.cuda.OutOfMemoryError:
        table.add("TRL 1.16", "out of memory", "", "", "", "")
    where = f"{torch.cuda.get_device_name()}, torch {torch.__version__}; a product reaches {most / 1e12:.0f} TFLOP/s."
    text = [table.text(), f"Generation: {speed:,.0f} tokens a second, {LIVE} conversations.", where]
    options.out.write_text("# The learner on a GPU\n\n" + "\n\n".join(text) + "\n")
    print(options.out.read_text())


if __name__ == "__main__":
    main()
