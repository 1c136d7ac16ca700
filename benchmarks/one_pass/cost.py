"""CPU of reading fresh turns, one at a time: the reader as it is and from one pass, by the length of the turn."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence

from benchmarks.one_pass.passes import PassEncoder
from benchmarks.one_pass.reading import OnePassReader, PassVectors
from benchmarks.report import Table
from personas.case.compiled import CompiledCase
from personas.reading.heads import load_heads
from personas.reading.reader import LocalReader
from reward_server.encoders.encoder import EncoderMatcher
from reward_server.encoders.minilm import EncoderCheckpoint
from reward_server.fitting.reader.dataset import ReaderRow
from reward_server.reader.build import local_reader, packaged_fluency
from reward_server.reader.encoder import load_reader_encoder

TURNS, WARM_UP = 400, 20
SEED = 1
WORDS = {"up to 12 words": range(13), "13-30": range(13, 31), "over 30": range(31, 10_000)}


def cost_table(
    checkpoint: EncoderCheckpoint, raw: bytes, cases: Mapping[tuple[str, str], CompiledCase], rows: Sequence[ReaderRow]
) -> Table:
    """Mean CPU of a turn; the readers take turns at each, and what none has read before is read by all."""
    distinct = {(row.key, row.turn.line, row.turn.turn): row for row in rows if row.turn.turn.strip()}
    chosen = random.Random(SEED).sample(list(distinct.values()), TURNS + WARM_UP)
    readers = _readers(checkpoint, raw)
    for reader in readers.values():
        for key in {row.key for row in chosen}:
            reader.prepare(cases[key])
    spent: dict[str, list[float]] = {name: [] for name in readers}
    for row in chosen:
        for name, reader in readers.items():
            begun = time.thread_time()
            reader.read(cases[row.key], [(row.turn.line, row.turn.turn)])
            spent[name].append(time.thread_time() - begun)
    return _table([len(row.turn.turn.split()) for row in chosen[WARM_UP:]], {n: t[WARM_UP:] for n, t in spent.items()})


def _table(words: Sequence[int], spent: Mapping[str, Sequence[float]]) -> Table:
    parts = {"all": range(10_000), **WORDS}
    numbers = {name: [n for n, count in enumerate(words) if count in part] for name, part in parts.items()}
    mean = sum(words) / len(words)
    table = Table(
        f"CPU of a turn in ms, mean of {len(words)} turns kept aside, {mean:.1f} words a turn",
        ["", *(f"{name} ({len(of)})" for name, of in numbers.items())],
    )
    for reader, times in spent.items():
        table.add(reader, *(f"{1e3 * sum(times[n] for n in of) / len(of):.1f}" for of in numbers.values()))
    return table


def _readers(checkpoint: EncoderCheckpoint, raw: bytes) -> dict[str, LocalReader]:
    """Each with caches of its own."""
    heads = load_heads(raw)

    def one_pass() -> PassVectors:
        return PassVectors(PassEncoder(checkpoint, "full"))

    return {
        "as it is": local_reader(),
        "one pass": OnePassReader(one_pass(), heads, packaged_fluency()),
        "as it is, without the fluency model": LocalReader(EncoderMatcher(load_reader_encoder(raw)), heads),
        "one pass, without the fluency model": OnePassReader(one_pass(), heads, None),
    }
