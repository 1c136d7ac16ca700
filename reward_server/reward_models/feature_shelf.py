"""Features of conversations, kept on disk: encoding is what training costs, the heads take seconds.

Work is done and kept in small groups, so an interrupted run loses one group. Names of files follow from the features'
version and the conversations, so nothing stale is ever found. What a run has asked for lies in one more file, from
which single rows are read: memory does not grow with the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from reward_server.encoders.anchor_shelf import AnchorShelf
from reward_server.reward_models.conversation import Conversation
from reward_server.reward_models.feature_rows import FeatureRows, RowFile, picked
from reward_server.reward_models.heads import Matrix

GROUP = 64


class Describer(Protocol):
    """Conversations in, some numbers about each out."""

    @property
    def version(self) -> str:
        """Changes whenever a number may."""

    @property
    def width(self) -> int:
        """The number of features."""

    def features(self, conversations: Sequence[Conversation]) -> Matrix:
        """Shape (len(conversations), width)."""


class CachedFeatures(Mapping[str, Matrix]):
    """Features by the digest of their conversation, or the first half of it, in a file."""

    def __init__(self, width: int, folder: Path) -> None:
        self._file = RowFile(width, folder)
        # Half of a digest as bytes tells conversations apart, and takes half the memory of its text.
        self._places: dict[bytes, int] = {}

    def __contains__(self, digest: object) -> bool:
        return isinstance(digest, str) and _key(digest) in self._places

    def __getitem__(self, digest: str) -> Matrix:
        place = self._places[_key(digest)]
        row: Matrix = self._file[place : place + 1][0]
        return row

    def __iter__(self) -> Iterator[str]:
        return (key.hex() for key in self._places)

    def __len__(self) -> int:
        return len(self._places)

    def add(self, digests: Sequence[str], rows: Matrix) -> None:
        """Features of conversations that are not here yet."""
        self._places |= dict(zip(map(_key, digests), self._file.append(rows), strict=True))

    def rows(self, digests: Sequence[str]) -> FeatureRows:
        """Those of conversations, in this order."""
        return picked(self._file, np.array([self._places[_key(each)] for each in digests], dtype=np.intp))


def _key(digest: str) -> bytes:
    return bytes.fromhex(digest[:32])


class CachingDescriber:
    """A describer that computes nothing twice."""

    def __init__(self, describer: Describer, shelf: FeatureShelf) -> None:
        self._describer = describer
        self._shelf = shelf
        self.version = describer.version
        self.width = describer.width

    def features(self, conversations: Sequence[Conversation]) -> Matrix:
        """Shape (len(conversations), width)."""
        known = self._shelf.features(self._describer, conversations)
        return known.rows([each.digest for each in conversations])[:]


class FeatureShelf:
    """Computes features once; what lies in `folder` may be removed at any time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._shelf = AnchorShelf(folder)
        self._described: dict[str, CachedFeatures] = {}

    def features(
        self,
        featuriser: Describer,
        conversations: Sequence[Conversation],
        on_progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> CachedFeatures:
        """The features of each conversation, and of those that were asked for before, by digest.

        `on_progress` hears of done and all conversations, first when nothing is done.
        """
        found = self._described.get(featuriser.version)
        if found is None:
            found = self._described[featuriser.version] = CachedFeatures(featuriser.width, self.folder)
        distinct = {conversation.digest: conversation for conversation in conversations}
        missing = [(digest, each) for digest, each in distinct.items() if digest not in found]
        on_progress(0, len(distinct))
        if len(missing) < len(distinct):
            on_progress(len(distinct) - len(missing), len(distinct))
        for start in range(0, len(missing), GROUP):
            group = missing[start : start + GROUP]
            digests = [digest for digest, _ in group]
            rows = self._shelf.find(featuriser.version, digests, featuriser.width)
            if rows is None:
                rows = np.ascontiguousarray(featuriser.features([conversation for _, conversation in group]))
                self._shelf.keep(featuriser.version, digests, rows)
            found.add(digests, rows)
            on_progress(len(distinct) - len(missing) + start + len(group), len(distinct))
        return found
