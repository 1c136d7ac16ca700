"""Builds the local reader of a process: its encoders with caches, and its heads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from personas.reading.fluency import ARTEFACT as FLUENCY
from personas.reading.fluency import LAYERS, Fluency, fluency_of
from personas.reading.heads import load_heads
from personas.reading.reader import LocalReader
from reward_server.encoders.anchor_shelf import AnchorShelf
from reward_server.encoders.encoder import EncoderMatcher
from reward_server.encoders.micro_batcher import MicroBatcher
from reward_server.encoders.minilm import packaged_folder, read_checkpoint
from reward_server.reader.encoder import ReaderPrecision, artefact_bytes, load_reader_encoder
from reward_server.reader.second import packaged_second

FLUENCY_KEPT = 2_000
"""Sentences whose vectors the fluency model keeps, from prefetching until they are judged: the rest it remembers."""


def local_reader(
    shelf: Path | None = None,
    looked_up: Callable[[int, int], None] | None = None,
    batcher: MicroBatcher | None = None,
    raw: bytes | None = None,
    precision: ReaderPrecision = "fp32",
    *,
    twice: bool = False,
) -> LocalReader:
    """The reader of an artefact; blocking.

    Args:
        shelf: a folder that keeps the vectors of authored texts between starts.
        looked_up: is told of the hits and misses of the cache of conversation texts.
        batcher: whose threads encode; without one, the calling thread does.
        raw: the bytes of an artefact; by default the packaged one.
        precision: the numbers of both encoders.
        twice: whether commitments are read a second time (decision 20).
    """
    raw = raw or artefact_bytes()
    encoder = load_reader_encoder(raw, precision=precision)
    batched = None if batcher is None else batcher.over(encoder)
    kept = None if shelf is None else AnchorShelf(shelf)
    embedder = EncoderMatcher(encoder, looked_up=looked_up, shelf=kept, batched=batched)
    fluency = packaged_fluency(looked_up, batcher, precision=precision)
    second = packaged_second(read_checkpoint(packaged_folder())) if twice else None
    return LocalReader(embedder, load_heads(raw), fluency, second)


def packaged_fluency(
    looked_up: Callable[[int, int], None] | None = None,
    batcher: MicroBatcher | None = None,
    raw: bytes | None = None,
    precision: ReaderPrecision = "fp32",
) -> Fluency:
    """The packaged fluency model, or that of an artefact's bytes; blocking. See `local_reader`."""
    raw = raw or artefact_bytes(FLUENCY)
    encoder = load_reader_encoder(raw, LAYERS, precision)
    batched = None if batcher is None else batcher.over(encoder)
    return fluency_of(raw, EncoderMatcher(encoder, cache_size=FLUENCY_KEPT, looked_up=looked_up, batched=batched))
