"""Sentence vectors kept in a folder between runs, so that each sentence of a data set is encoded once.

The vectors are those of the product's encoder, bit for bit: only where they come from differs. Files are named after
the encoder's version, so another encoder never reads them.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reward_server.encoders.encoder import TextEncoder, Vectors, meaning_width

PART = 256
"""Texts encoded between two steps of the progress bar."""


class KeptVectors:
    """A text encoder that remembers on disk; `save` writes what is new."""

    def __init__(self, encoder: TextEncoder, folder: Path | None, threads: int = 2) -> None:
        self._encoder = encoder
        self._threads = threads
        self._places: dict[bytes, int] = {}
        self._rows: NDArray[np.float32] = np.zeros((0, encoder.width), dtype=np.float32)
        name = hashlib.sha256(encoder.version.encode()).hexdigest()[:12]
        self._path = None if folder is None else folder / f"vectors-{name}.npz"
        if self._path is not None and self._path.exists():
            with np.load(self._path) as kept:
                self._rows = kept["rows"]
                self._places = {key.tobytes(): place for place, key in enumerate(kept["keys"])}
        self._saved = len(self._places)

    @property
    def version(self) -> str:
        """That of the encoder: the vectors are the same."""
        return self._encoder.version

    @property
    def width(self) -> int:
        """The length of a vector."""
        return self._encoder.width

    @property
    def meaning(self) -> int:
        """How many numbers at the head of a vector are the unit vector."""
        return meaning_width(self._encoder)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, shape (len(texts), width)."""
        keys = [hashlib.sha256(text.encode("utf-8", "replace")).digest()[:16] for text in texts]
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._places}
        if missing:
            self._add(missing)
        rows: Vectors = self._rows[[self._places[key] for key in keys]]
        return rows

    def _add(self, missing: dict[bytes, str]) -> None:
        order = sorted(missing.items(), key=lambda item: len(item[1]))
        parts = [order[start : start + PART] for start in range(0, len(order), PART)]
        fresh: list[Vectors] = []
        with ThreadPoolExecutor(self._threads) as threads:
            for rows in threads.map(lambda part: self._encoder.encode([text for _, text in part]), parts):
                fresh.append(rows)
                if len(parts) > 1:
                    print(f"\r  encoding: part {len(fresh)} of {len(parts)} ", end="", file=sys.stderr, flush=True)
        if len(parts) > 1:
            print(file=sys.stderr)
        start = len(self._places)
        self._places |= {key: start + number for number, (key, _) in enumerate(order)}
        self._rows = np.concatenate([self._rows, *fresh])

    def save(self) -> None:
        """Write what was encoded since it was read."""
        if self._path is None or len(self._places) == self._saved:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        keys = np.frombuffer(b"".join(self._places), dtype=np.uint8).reshape(len(self._places), 16)
        partial = self._path.with_suffix(".part.npz")
        np.savez(partial, keys=keys, rows=self._rows)
        partial.replace(self._path)
        self._saved = len(self._places)
