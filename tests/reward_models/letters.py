"""An encoder of no meaning, for tests that need vectors and no model."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from reward_server.encoders.encoder import Vectors


class LetterEncoder:
    """Unit vectors that follow from the text."""

    version = "letters/1"
    width = 8

    def encode(self, texts: Sequence[str]) -> Vectors:
        rows = [np.frombuffer(hashlib.sha256(text.encode()).digest()[:8], dtype=np.uint8) for text in texts]
        vectors = np.array(rows, dtype=np.float32).reshape(len(texts), 8) + 1.0
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
