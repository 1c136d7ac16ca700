"""The port through which the local reader turns texts into vectors; the server passes the reader's encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """Texts in, unit vectors out. Blocking; a vector depends on its text alone, or replays would differ."""

    @property
    def version(self) -> str:
        """Identifies weights and method; part of the scoring version."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of conversation texts, shape (len(texts), width)."""

    def embed_authored(self, texts: Sequence[str]) -> Vectors:
        """The same for texts of a case, which are kept for good."""

    async def prefetched(self, texts: Sequence[str]) -> None:
        """Embed texts that will be asked for soon."""
