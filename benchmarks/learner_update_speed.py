"""Forward and backward of one update beside TRL's, on the same weights and tokens, in turn, in CPU seconds of a thread.

    .venv/bin/python -m pip install trl==1.16.0
    .venv/bin/python -m benchmarks.learner_update_speed

Both compute the token-mean clipped loss of 16 two-turn episodes in 4 groups: a prompt of 200 tokens, then 40 to 240 of
which a quarter is the persona's. TRL gets them padded, as its trainer makes them, with its fused head. Gradients are
compared in every run. Random weights: what is measured does not depend on them. Where the learner asks oneDNN for its
products (`learner.products`), it is measured with those that torch would ask for as well.
"""

from __future__ import annotations

import argparse
import collections
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch

from benchmarks.report import Table, environment, write
from learner import products
from learner.algorithms import Objective
from learner.model import Policy
from learner.packing import packed_size
from learner.types import Group, Segment, Trajectory
from learner.update import Updater, UpdateSettings

PROMPT, GROUPS, MEMBERS = 200, 4, 4
SIZES = {"3.4 M": (256, 4, 1024), "23 M": (512, 6, 8192)}


@dataclass(frozen=True)
class Measured:
    """CPU seconds of each way, the smallest of all rounds, and how far gradients are apart."""

    seconds: dict[str, float]
    gap: float
    parameters: int


def build(width: int, layers: int, vocabulary: int) -> Any:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=width // 8,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        eos_token_id=0,
        pad_token_id=1,
        bos_token_id=None,
    )
    return Qwen3ForCausalLM(config)


def episodes(vocabulary: int) -> list[Group]:
    draw = random.Random(0)

    def tokens(count: int) -> tuple[int, ...]:
        return tuple(draw.randrange(2, vocabulary) for _ in range(count))

    def spoken(count: int) -> Segment:
        return Segment(tokens(count), (-1.0,) * count)

    groups = []
    for seed in range(GROUPS):
        opening, members = Segment(tokens(PROMPT)), []
        for _ in range(MEMBERS):
            count = draw.randrange(40, 241)
            gap, first = count // 4, count // 3
            segments = (opening, spoken(first), Segment(tokens(gap)), spoken(count - first - gap))
            members.append(Trajectory(segments, (0.0, round(draw.random(), 3)), seed))
        groups.append(Group(seed, tuple(members)))
    return groups


def ours(policy: Policy, groups: list[Group], micro_tokens: int) -> Callable[[], None]:
    updater = updater_of(policy, micro_tokens)
    return lambda: updater.gradients(groups)


def updater_of(policy: Policy, micro_tokens: int) -> Updater:
    settings = UpdateSettings(Objective(eps_high=0.28), micro_tokens=micro_tokens)
    return Updater(policy, torch.optim.SGD(policy.model.parameters(), lr=0.0), settings)


def theirs(
    model: Any, groups: list[Group], advantages: torch.Tensor, *, device: str = "cpu", prompt: int = PROMPT
) -> Callable[[], None]:
    """TRL's loss as its trainer calls it, without the trainer around it; on a GPU in bf16."""
    from trl import GRPOTrainer

    members = [trajectory for group in groups for trajectory in group.trajectories]
    width = max(len(each.ids) for each in members) - prompt

    def padded(values: list[int]) -> list[int]:
        return values + [0] * (width - len(values))

    accelerator = SimpleNamespace(
        num_processes=1,
        gather=lambda each: each,
        gather_for_metrics=lambda each: each,
        reduce=lambda each, reduction=None: each,
        sync_gradients=True,
        autocast=nullcontext if device == "cpu" else lambda: torch.autocast(device, torch.bfloat16),
    )
    trainer = SimpleNamespace(
        accelerator=accelerator,
        aux_loss_enabled=False,
        top_entropy_quantile=1.0,
        off_policy_mask_threshold=None,
        importance_sampling_level="token",
        beta=0.0,
        loss_type="dapo",
        epsilon_low=0.2,
        epsilon_high=0.28,
        use_vllm=False,
        vllm_importance_sampling_correction=False,
        max_completion_length=width,
        current_gradient_accumulation_steps=1,
        _entropy_bonus_enabled=False,
        model=model,
        _metrics={"train": collections.defaultdict(list)},
        entropy_coef=0.0,
        args=SimpleNamespace(delta=None, use_bias_correction_kl=False, steps_per_generation=1),
    )
    score = GRPOTrainer._get_per_token_logps_and_entropies.__wrapped__
    trainer._get_per_token_logps_and_entropies = lambda *args, **options: score(trainer, *args, **options)
    spoken = [[int(segment.sampled) for segment in each.segments[1:] for _ in segment.ids] for each in members]
    mask, tools = (
        torch.tensor([padded([1] * len(each)) for each in spoken]),
        torch.tensor([padded(each) for each in spoken]),
    )
    inputs = {
        "prompt_ids": torch.tensor([each.ids[:prompt] for each in members]),
        "prompt_mask": torch.ones(len(members), prompt, dtype=torch.long),
        "completion_ids": torch.tensor([padded(list(each.ids[prompt:])) for each in members]),
        "completion_mask": mask,
        "tool_mask": tools,
        "advantages": advantages,
        "num_items_in_batch": (mask * tools).sum(),
    }
    placed = {name: each.to(device) for name, each in inputs.items()}
    return lambda: GRPOTrainer._compute_loss(trainer, model, placed).backward()


@contextmanager
def torchs_products() -> Iterator[None]:
    """Matrices are multiplied by the library that torch asks."""
    with mock.patch.object(products, "onednn_pays", return_value=False):
        yield


def gradient(model: Any) -> torch.Tensor:
    return torch.cat([each.grad.flatten() for each in model.parameters()])


def measure(width: int, layers: int, vocabulary: int, rounds: int, micro_tokens: int) -> Measured:
    from trl.trainer.utils import add_fused_lm_head

    groups = episodes(vocabulary)
    model = build(width, layers, vocabulary).eval()
    twin = build(width, layers, vocabulary).train()  # it has no dropout
    add_fused_lm_head(twin, outputs=("log_probs", "entropy"))
    policy = Policy(model, end_id=0)
    plain = Policy(build(width, layers, vocabulary).eval(), end_id=0, packs=False)
    assert policy.packs
    with torchs_products():
        other = Policy(build(width, layers, vocabulary).eval(), end_id=0)
        assert other.packs

    def with_torchs_products() -> None:
        with torchs_products():
            others()

    others = ours(other, groups, micro_tokens)
    mine = ours(policy, groups, micro_tokens)
    advantages = torch.tensor(
        [row[-1] for row in updater_of(policy, micro_tokens).credit.per_turn(groups, {})], dtype=torch.float32
    )
    ways: dict[str, tuple[Any, Callable[[], None]]] = {
        "TRL 1.16": (twin, theirs(twin, groups, advantages)),
        "padded rows": (plain.model, ours(plain, groups, micro_tokens)),
        "packed, torch's products": (other.model, with_torchs_products),
        "packed": (model, mine),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name, (of, step) in ways.items():
            of.zero_grad()
            started = time.process_time()
            step()
            if turn:  # the first round warms up
                seconds[name].append(time.process_time() - started)
    gap = float((gradient(model) - gradient(twin)).norm() / gradient(twin).norm())
    return Measured(
        {name: min(found) for name, found in seconds.items()}, gap, sum(each.numel() for each in model.parameters())
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--micro-tokens", type=int, default=4096)
    parser.add_argument("--only", choices=list(SIZES))
    options = parser.parse_args()
    torch.set_num_threads(1)
    table = Table(
        f"Forward and backward of 16 episodes, CPU seconds of one thread, smallest of {options.rounds} rounds in turn",
        [
            "parameters",
            *("TRL 1.16", "padded rows", "packed, torch's products", "packed"),
            *("times TRL", "times TRL with torch's products", "gradient against TRL's"),
        ],
    )
    for name, size in SIZES.items():
        if options.only in (None, name):
            found = measure(*size, options.rounds, options.micro_tokens)
            trl, _, others, packed = found.seconds.values()
            print(name, found, flush=True)
            times = (f"{trl / packed:.2f}", f"{trl / others:.2f}", f"{found.gap:.0e}")
            table.add(name, *(f"{each:.2f}" for each in found.seconds.values()), *times)
    groups = episodes(1024)
    rows = [row for group in groups for trajectory in group.trajectories for row in trajectory.rows]
    widest = max(len(trajectory.ids) for group in groups for trajectory in group.trajectories)
    raw = sum(len(segment.ids) for row in rows for segment in row)
    sampled = sum(trajectory.sampled_tokens for group in groups for trajectory in group.trajectories)
    counts = (
        f"Tokens: {widest * len(rows):,} padded, {raw:,} without padding, {packed_size(rows):,} with each prompt once,"
        f" {sampled:,} of them sampled. The last column is |ours - TRL's| / |TRL's| over all parameters. The learner's"
        f" products are by {'oneDNN' if products.onednn_pays() else 'the library that torch asks'} on this processor."
    )
    print(table.text())
    if options.only is None:
        title = "# An update beside TRL's"
        write("learner_update_speed", "\n\n".join([title, table.text(), counts, environment()]))


if __name__ == "__main__":
    main()
