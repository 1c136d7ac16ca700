"""Encoding whole conversations on one thread: ours beside sentence-transformers, and what the processor allows.

Usage: python -m benchmarks.encoder_speed [--sizes 96 256] [--rounds 2] [--int8] [--write]

All variants encode the same synthetic conversations (see `synthetic`) with the same weights and 512 positions, one
after the other in each round; CPU time of the process, one thread, tokenisation included; medians of the ratios
within a round with their range. Scores come from a fixed random head (standard deviation 0.11). The limit is what
the matrix products alone would take at their measured peaks.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

os.environ.update({"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"})

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (the name the field uses)
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer

from benchmarks.report import Table, environment, write
from benchmarks.synthetic import head_scores, texts
from reward_server.encoders.fast import MAX_TOKENS, FastEncoder, load_packaged_fast
from reward_server.encoders.minilm import LAYERS, WIDTH, packaged_folder, read_checkpoint

BATCH = 32
ROWS = 4096
SHAPES = {"qkv": (WIDTH, 3 * WIDTH), "out": (WIDTH, WIDTH), "wide": (WIDTH, 4 * WIDTH), "narrow": (4 * WIDTH, WIDTH)}
PEAK_S = 0.25

Matrix = NDArray[np.float32]
Encode = Callable[[Sequence[str]], Matrix]


@dataclass
class Variant:
    """One way to encode, and what was measured of it."""

    name: str
    encode: Encode
    vectors: Matrix = field(default_factory=lambda: np.zeros((0, WIDTH), dtype=np.float32))
    seconds: list[float] = field(default_factory=list)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[96, 256], help="numbers of conversations")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--int8", action="store_true", help="also measure what 8-bit products would do to scores")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/encoder_speed.md")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    ways = variants()
    limits = peaks()
    parts = [limit_table(limits).text()]
    for size in arguments.sizes:
        parts.append(measure(ways, size, arguments.rounds, limits))
    if arguments.int8:
        parts.append(int8_table(96).text())
    parts.append(environment() + f" torch {torch.__version__}, oneDNN; CPU time, one thread.")
    report = "\n\n".join(parts)
    print(report)
    if arguments.write:
        write("encoder_speed", f"# Encoding conversations on one thread\n\n{report}")


# --- the ways to encode ---------------------------------------------------------------------------


def variants() -> list[Variant]:
    """The baseline first."""
    return [
        Variant("sentence-transformers fp32, batch 32", _sentence_transformers(torch.float32)),
        Variant("sentence-transformers bf16, batch 32", _sentence_transformers(torch.bfloat16)),
        Variant("ours fp32, packed", _unit_vectors(load_packaged_fast("fp32"))),
        *_in_bf16(),
    ]


def _in_bf16() -> list[Variant]:
    fast = load_packaged_fast("auto")
    if fast.precision == "fp32":
        print("this processor has no native bf16: the server would compute in fp32")
        return []
    return [Variant(f"ours {fast.version.rpartition('+')[2]}, packed", _unit_vectors(fast))]


def _unit_vectors(encoder: FastEncoder) -> Encode:
    """What the others give, too; the means of inner layers that come with it are computed and left out."""
    return lambda batch: encoder.encode(batch)[:, : encoder.meaning]


def _sentence_transformers(dtype: torch.dtype) -> Encode:
    model = SentenceTransformer(str(packaged_folder()), device="cpu", model_kwargs={"dtype": dtype})
    model.max_seq_length = MAX_TOKENS

    def encode(batch: Sequence[str]) -> Matrix:
        found = model.encode(list(batch), batch_size=BATCH, convert_to_tensor=True, show_progress_bar=False)
        return np.asarray(F.normalize(found.float(), dim=1).numpy())

    return encode


# --- one number of conversations ------------------------------------------------------------------


def measure(ways: Sequence[Variant], size: int, rounds: int, limits: dict[str, float]) -> str:
    """Interleaved rounds over `size` conversations."""
    conversations = texts(size, seed=size)
    lengths = token_counts(conversations)
    for way in ways:
        way.vectors, way.seconds = way.encode(conversations), []  # the first time is not counted
    for _ in range(rounds):
        for way in ways:
            started = time.process_time()
            way.encode(conversations)
            way.seconds.append(time.process_time() - started)
    head = ["variant", "conversations/s", "tokens/s", "times fp32 baseline", "times bf16 baseline"]
    table = Table(
        f"{size} conversations, {sum(lengths):,} tokens (mean {statistics.mean(lengths):.0f}, half below "
        f"{statistics.median(lengths):.0f}, longest {max(lengths)}), {rounds} rounds",
        [*head, "share of the limit", "Spearman", "max abs d(score)"],
    )
    reference = head_scores(ways[0].vectors)
    for way in ways:
        speed = sum(lengths) / statistics.median(way.seconds)
        scores = head_scores(way.vectors)
        limit = limits["bf16" if "bf16" in way.name else "fp32"]
        table.add(
            way.name,
            f"{size / statistics.median(way.seconds):.1f}",
            f"{speed:,.0f}",
            ratio(ways[0].seconds, way.seconds),
            ratio(ways[1].seconds, way.seconds),
            f"{speed / limit:.0%} of {'bf16' if 'bf16' in way.name else 'fp32'}",
            f"{spearmanr(scores, reference)[0]:.5f}",
            f"{np.abs(scores - reference).max():.4f}",
        )
    return table.text()


def ratio(baseline: Sequence[float], other: Sequence[float]) -> str:
    """How many times as fast, round by round: median and range."""
    found = sorted(a / b for a, b in zip(baseline, other, strict=True))
    return f"{statistics.median(found):.2f} [{found[0]:.2f}-{found[-1]:.2f}]"


def token_counts(conversations: Sequence[str]) -> list[int]:
    """Tokens that the model sees of each."""
    tokenizer = read_checkpoint(packaged_folder()).tokenizer
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    return [len(found.ids) for found in tokenizer.encode_batch(list(conversations))]


# --- what the processor allows --------------------------------------------------------------------


def peaks() -> dict[str, float]:
    """Tokens a second if only the four matrix products of each layer had to be computed, by precision."""
    return {name: _limit(dtype) for name, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16))}


def limit_table(limits: dict[str, float]) -> Table:
    """The limits, and what follows for the ratios that were aimed at."""
    table = Table(
        f"Matrix products alone, {ROWS} rows, public torch functions, same run",
        ["precision", "tokens/s", "times fp32"],
    )
    for name, limit in limits.items():
        table.add(name, f"{limit:,.0f}", f"{limit / limits['fp32']:.2f}")
    return table


@torch.inference_mode()
def _limit(dtype: torch.dtype) -> float:
    seconds = 0.0
    for width, height in SHAPES.values():
        rows, weight = torch.randn(ROWS, width).to(dtype), torch.randn(height, width).to(dtype)
        bias = torch.randn(height).to(dtype)
        F.linear(rows, weight, bias)
        times: list[float] = []
        while sum(times) < PEAK_S or len(times) < 5:
            started = time.process_time()
            F.linear(rows, weight, bias)
            times.append(time.process_time() - started)
        seconds += LAYERS * statistics.median(times)
    return ROWS / seconds


# --- what 8 bits would do -------------------------------------------------------------------------


@torch.inference_mode()
def int8_table(size: int) -> Table:
    """Scores with weights and activations rounded to 8 bits, products in fp32: numbers only, not speed."""
    conversations = texts(size, seed=size)
    encoder = load_packaged_fast("fp32")
    reference = head_scores(_unit_vectors(encoder)(conversations))
    table = Table(
        f"8-bit products simulated (scales per row of activations and per row of weights), {size} conversations",
        ["products in 8 bits", "Spearman", "max abs d(score)"],
    )
    exact = F.linear
    for chosen in (["out"], ["wide"], ["wide", "narrow"], list(SHAPES)):
        shapes = {SHAPES[name] for name in chosen}

        def rounded(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
            if (weight.shape[1], weight.shape[0]) not in shapes:  # noqa: B023 (called before the next choice)
                return exact(rows, weight, bias)
            return exact(_in_8_bits(rows), _in_8_bits(weight), bias)

        F.linear = rounded  # type: ignore[assignment]
        try:
            scores = head_scores(_unit_vectors(encoder)(conversations))
        finally:
            F.linear = exact
        table.add(
            ", ".join(chosen), f"{spearmanr(scores, reference)[0]:.5f}", f"{np.abs(scores - reference).max():.4f}"
        )
    return table


def _in_8_bits(matrix: torch.Tensor) -> torch.Tensor:
    scale = matrix.abs().amax(dim=1, keepdim=True) / 127
    return (matrix / scale).round() * scale


if __name__ == "__main__":
    main()
