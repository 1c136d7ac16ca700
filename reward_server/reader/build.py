"""Builds the local reader of a process: its encoder with caches, and its heads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from personas.reading.heads import load_heads
from personas.reading.reader import LocalReader
from reward_server.reader.encoder import artefact_bytes, load_reader_encoder
from reward_server.reward_models.anchor_shelf import AnchorShelf
from reward_server.reward_models.encoder import EncoderMatcher
from reward_server.reward_models.micro_batcher import MicroBatcher


def local_reader(
    shelf: Path | None = None,
    looked_up: Callable[[int, int], None] | None = None,
    batcher: MicroBatcher | None = None,
    raw: bytes | None = None,
) -> LocalReader:
    """The reader of an artefact; blocking.

    Args:
        shelf: a folder that keeps the vectors of authored texts between starts.
        looked_up: is told of the hits and misses of the cache of conversation texts.
        batcher: whose threads encode; without one, the calling thread does.
        raw: the bytes of an artefact; by default the packaged one.
    """
    raw = raw or artefact_bytes()
    encoder = load_reader_encoder(raw)
    batched = None if batcher is None else batcher.over(encoder)
    kept = None if shelf is None else AnchorShelf(shelf)
    embedder = EncoderMatcher(encoder, looked_up=looked_up, shelf=kept, batched=batched)
    return LocalReader(embedder, load_heads(raw))
