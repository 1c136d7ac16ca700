"""The bf16 forward pass by how it multiplies matrices and computes attention: what the encoder chooses between.

Usage: python -m benchmarks.forward_ways [--size 96] [--rounds 3] [--write]

The same conversations as in `benchmarks.encoder_speed`, one thread, CPU time, interleaved rounds; medians of the ratios
to the plainest way within a round, with their range. Exact says whether every text has the same bits in any pack here
(decision 6). On a processor without native bf16 there is nothing to choose.
"""

from __future__ import annotations

import argparse
import statistics
import time

from benchmarks.encoder_speed import ratio
from benchmarks.report import Table, environment, write
from benchmarks.synthetic import texts
from reward_server.reward_models.attention import by_kernel, by_products
from reward_server.reward_models.fast import MAX_TOKENS, FastEncoder, load_packaged_fast
from reward_server.reward_models.minilm import MiniLmEncoder, packaged_folder, read_checkpoint
from reward_server.reward_models.packed import Bf16Forward, prepacked
from reward_server.reward_models.products import FULL_ROWS, Products

ATTENTIONS = {"attention by products": by_products, "fused attention": by_kernel}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=96, help="number of conversations")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/forward_ways.md")
    arguments = parser.parse_args()
    if load_packaged_fast("auto").precision == "fp32":
        print("this processor has no native bf16: the server computes in fp32")
        return
    text = f"{measured(ways(), arguments.size, arguments.rounds).text()}\n\n{environment()} CPU time, one thread."
    print(text)
    if arguments.write:
        write("forward_ways", text)


def ways() -> dict[str, FastEncoder]:
    """The plainest first; pre-packed ones where this torch has them."""
    weights, tokenizer, version = read_checkpoint(packaged_folder())
    exact = MiniLmEncoder(weights, tokenizer, version, MAX_TOKENS, tone=True)
    found: dict[str, FastEncoder] = {}
    for name, attention in ATTENTIONS.items():
        plain = Bf16Forward(weights, products=Products(FULL_ROWS), attention=attention)
        found[f"public products, {name}"] = FastEncoder(exact, plain, plain.method)
        packed = prepacked(weights, FULL_ROWS, attention)
        if packed is not None:
            found[f"pre-packed products, {name}"] = FastEncoder(exact, packed, packed.method)
    return found


def measured(encoders: dict[str, FastEncoder], size: int, rounds: int) -> Table:
    """Interleaved rounds; the first time each encodes is not counted."""
    conversations = texts(size, seed=size)
    seconds: dict[str, list[float]] = {name: [] for name in encoders}
    for turn in range(rounds + 1):
        for name, encoder in encoders.items():
            started = time.process_time()
            encoder.encode(conversations)
            if turn:
                seconds[name].append(time.process_time() - started)
    first = next(iter(seconds.values()))
    table = Table(
        f"{size} conversations, {rounds} rounds", ["forward pass", "conversations/s", "times as fast", "exact"]
    )
    for name, taken in seconds.items():
        exact = "yes" if encoders[name].packs_are_exact else "no"
        table.add(name, f"{size / statistics.median(taken):.1f}", ratio(first, taken), exact)
    return table


if __name__ == "__main__":
    main()
