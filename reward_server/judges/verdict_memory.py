"""The memory in front of the durable store of decisions: what was used longest ago is forgotten first.

Bounded by the number of decisions and by their size: the reasons that models write may be a line or a page, and with
several samples many pages. For one event loop: there is no lock.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping

REMEMBERED = 8192
REMEMBERED_BYTES = 64 * 1024 * 1024


class VerdictMemory:
    """At most `size` texts of at most `size_bytes` in all, by key. Texts are ASCII: a character is a byte."""

    def __init__(self, size: int = REMEMBERED, size_bytes: int = REMEMBERED_BYTES) -> None:
        self._size = size
        self._size_bytes = size_bytes
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._held_bytes = 0

    @property
    def held_bytes(self) -> int:
        """The size of all that is remembered, keys included."""
        return self._held_bytes

    def recall(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the texts of those of the keys that are remembered."""
        found = {key: self._texts[key] for key in keys if key in self._texts}
        for key in found:
            self._texts.move_to_end(key)
        return found

    def keep(self, texts: Mapping[str, str]) -> None:
        """Remember texts, and forget others for them; one that is larger than all there is room for is not kept."""
        for key, text in texts.items():
            self._forget(key)
            if _cost(key, text) <= self._size_bytes:
                self._texts[key] = text
                self._held_bytes += _cost(key, text)
        while len(self._texts) > self._size or self._held_bytes > self._size_bytes:
            self._forget(next(iter(self._texts)))

    def _forget(self, key: str) -> None:
        text = self._texts.pop(key, None)
        if text is not None:
            self._held_bytes -= _cost(key, text)


def _cost(key: str, text: str) -> int:
    return len(key) + len(text)
