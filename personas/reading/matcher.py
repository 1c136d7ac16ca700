"""The port through which personas compare texts; the server passes one built on its text encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Matcher(Protocol):
    """Semantic similarity of short texts.

    Implementations must be deterministic for each single text: the similarity of a pair may not
    depend on what else is in the call, or replays would differ. Blocking; call it off the event loop.
    """

    @property
    def version(self) -> str:
        """Identifies weights and method; part of the scoring version."""

    def cosine(self, texts: Sequence[str], anchors: Sequence[str]) -> NDArray[np.float64]:
        """Cosine similarities, shape (len(texts), len(anchors)), rounded to 3 decimals.

        `anchors` are authored texts (kept encoded for good), `texts` come from conversations.
        """
