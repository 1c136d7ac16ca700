"""Features of conversations, kept on disk: encoding is what training costs, the heads take seconds.

Work is done and kept in small groups, so an interrupted run loses one group. Names of files follow from the features'
version and the conversations, so nothing stale is ever found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from reward_server.reward_models.anchor_shelf import AnchorShelf
from reward_server.reward_models.conversation import Conversation
from reward_server.reward_models.heads import Matrix

GROUP = 64


class Describer(Protocol):
    """Conversations in, some numbers about each out."""

    @property
    def version(self) -> str:
        """Changes whenever a number may."""

    @property
    def width(self) -> int:
        """How many numbers."""

    def features(self, conversations: Sequence[Conversation]) -> Matrix:
        """Shape (len(conversations), width)."""


class Shelved:
    """A describer that computes nothing twice."""

    def __init__(self, describer: Describer, shelf: FeatureShelf) -> None:
        self._describer = describer
        self._shelf = shelf
        self.version = describer.version
        self.width = describer.width

    def features(self, conversations: Sequence[Conversation]) -> Matrix:
        """Shape (len(conversations), width)."""
        known = self._shelf.features(self._describer, conversations)
        return np.stack([known[each.digest] for each in conversations])


class FeatureShelf:
    """Computes features once; `folder` may be removed at any time."""

    def __init__(self, folder: Path) -> None:
        self._shelf = AnchorShelf(folder)

    def features(
        self,
        featuriser: Describer,
        conversations: Sequence[Conversation],
        on_progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> dict[str, Matrix]:
        """The features of each conversation, by its digest.

        `on_progress` hears of done and all conversations, first when nothing is done.
        """
        distinct = list({conversation.digest: conversation for conversation in conversations}.items())
        found: dict[str, Matrix] = {}
        on_progress(0, len(distinct))
        for start in range(0, len(distinct), GROUP):
            group = distinct[start : start + GROUP]
            digests = [digest for digest, _ in group]
            rows = self._shelf.find(featuriser.version, digests, featuriser.width)
            if rows is None:
                rows = np.ascontiguousarray(featuriser.features([conversation for _, conversation in group]))
                self._shelf.keep(featuriser.version, digests, rows)
            found |= dict(zip(digests, rows, strict=True))
            on_progress(len(found), len(distinct))
        return found
