"""The forward pass by how it multiplies matrices and computes attention: what the encoders choose between.

Usage: python -m benchmarks.forward_ways [--fp32] [--size 96] [--rounds 3] [--write]

The same conversations as in `benchmarks.encoder_speed`, one thread, CPU time, interleaved rounds; medians of the ratios
to the plainest way within a round, with their range. Exact says whether every text has the same bits in any pack here
(decision 6). On a processor without native bf16 there is nothing to choose for bf16. `--fp32` measures the forward pass
of personas and rubrics instead, on labelled turns of the scenarios: `--size` turns of each collection.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Mapping

from benchmarks.encoder_speed import ratio
from benchmarks.report import Table, environment, write
from benchmarks.synthetic import texts
from reward_server.encoders.attention import by_kernel, by_products
from reward_server.encoders.fast import MAX_TOKENS, FastEncoder, load_packaged_fast
from reward_server.encoders.int8 import INT8
from reward_server.encoders.minilm import MiniLmEncoder, packaged_folder, read_checkpoint
from reward_server.encoders.packed import Bf16Forward, prepacked
from reward_server.encoders.products import FULL_ROWS, Products
from scenarios.library import labelled_turns, load_library

ATTENTIONS = {"attention by products": by_products, "fused attention": by_kernel}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=96, help="number of conversations")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/forward_ways.md")
    parser.add_argument("--fp32", action="store_true", help="the exact encoder, into forward_ways_fp32.md")
    arguments = parser.parse_args()
    if arguments.fp32:
        turns = natural(arguments.size)
        table = measured(exact_ways(), turns, arguments.rounds, f"{len(turns)} labelled turns in fp32")
        report(table, "forward_ways_fp32", kept=arguments.write)
        return
    if load_packaged_fast("auto").precision == "fp32":
        print("this processor has no native bf16: the server computes in fp32")
        return
    table = measured(ways(), texts(arguments.size, seed=arguments.size), arguments.rounds)
    report(table, "forward_ways", kept=arguments.write)


def report(table: Table, name: str, *, kept: bool) -> None:
    """Print a table, and keep it."""
    text = f"{table.text()}\n\n{environment()} CPU time, one thread."
    print(text)
    if kept:
        write(name, text)


def natural(each: int) -> list[str]:
    """So many labelled turns of each collection."""
    library = load_library()
    found: dict[str, list[str]] = {}
    for name, turns in labelled_turns(library).items():
        found.setdefault(name.partition("/")[0], []).extend(turn.turn for turn in turns)
    return [turn for turns in found.values() for turn in random.Random(0).sample(turns, each)]


def exact_ways() -> dict[str, MiniLmEncoder]:
    """Torch's public functions, what the encoder takes of its own accord, and what the reader takes."""
    checkpoint = read_checkpoint(packaged_folder())
    return {
        "public products": MiniLmEncoder(*checkpoint, ways=[Products()]),
        "pre-packed products": MiniLmEncoder(*checkpoint),
        "int8, as the reader": MiniLmEncoder(*checkpoint, ways=INT8),
    }


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


def measured(
    encoders: Mapping[str, FastEncoder | MiniLmEncoder], read: list[str], rounds: int, of_what: str = ""
) -> Table:
    """Interleaved rounds; the first time each encodes is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in encoders}
    for turn in range(rounds + 1):
        for name, encoder in encoders.items():
            started = time.process_time()
            encoder.encode(read)
            if turn:
                seconds[name].append(time.process_time() - started)
    first = next(iter(seconds.values()))
    counted = "turns/s" if of_what else "conversations/s"
    of_what = of_what or f"{len(read)} conversations"
    table = Table(f"{of_what}, {rounds} rounds", ["forward pass", counted, "times as fast", "exact"])
    for name, taken in seconds.items():
        exact = "yes" if encoders[name].packs_are_exact else "no"
        table.add(name, f"{len(read) / statistics.median(taken):.1f}", ratio(first, taken), exact)
    return table


if __name__ == "__main__":
    main()
