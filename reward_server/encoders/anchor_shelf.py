"""Vectors of authored texts, kept on disk between processes.

A server with thirty scenarios compares conversations with some thousands of authored sentences; encoding them
anew at every start costs more than everything else that start does. A file is named after the encoder and
the texts, so a changed sentence or other weights are simply other files. What cannot be read is encoded
again; what cannot be written is not kept: the shelf saves time and is never needed.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reward_server.folders import make_private


class AnchorShelf:
    """A folder of vectors, one file for each group of texts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, version: str, texts: Sequence[str], width: int) -> NDArray[np.float32] | None:
        """The vectors that were kept, shape (len(texts), width), or None."""
        try:
            vectors = np.load(self._path(version, texts), allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None
        if vectors.dtype != np.float32 or vectors.shape != (len(texts), width) or not np.isfinite(vectors).all():
            return None
        kept: NDArray[np.float32] = vectors
        return kept

    def keep(self, version: str, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Write a file that appears whole or not at all."""
        path = self._path(version, texts)
        draft = path.with_name(f".{path.name}-{secrets.token_hex(6)}")
        with suppress(OSError):
            make_private(self._folder)
            try:
                with draft.open("wb") as file:
                    np.save(file, vectors, allow_pickle=False)
                os.replace(draft, path)
            finally:
                draft.unlink(missing_ok=True)

    def _path(self, version: str, texts: Sequence[str]) -> Path:
        digest = hashlib.sha256("\0".join([version, *texts]).encode())
        return self._folder / f"{digest.hexdigest()[:40]}.npy"
