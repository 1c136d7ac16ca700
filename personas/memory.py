"""Bounded memories of results that depend on their key alone: what was used longest ago is forgotten first.

Scoring a conversation so far reads the same turns again in every turn, so what a text means is worked out once.
Safe to share between threads: two that miss at the same time compute the same value twice. The number of values is
bounded, and so must be the length of the texts: those that are too long are worked out anew each time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, wraps
from threading import Lock
from typing import Generic, TypeVar

from personas.breath import breathe

K = TypeVar("K")
V = TypeVar("V")

KEPT_CHARS = 4_000
"""Longer texts are not worth their place."""


class Memory(Generic[K, V]):
    """At most `size` values."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = Lock()

    def recall(self, keys: Iterable[K]) -> dict[K, V]:
        """What is known of the keys."""
        values, found = self._values, {}
        with self._lock:
            for key in keys:
                if key in values:
                    values.move_to_end(key)
                    found[key] = values[key]
        return found

    def keep(self, fresh: Mapping[K, V]) -> None:
        """Remember values, and forget others for them."""
        with self._lock:
            for key, value in fresh.items():
                self._values[key] = value
                self._values.move_to_end(key)
            while len(self._values) > self._size:
                self._values.popitem(last=False)

    def __len__(self) -> int:
        return len(self._values)


def remembered(size: int, longest: int = KEPT_CHARS) -> Callable[[Callable[[str], V]], Callable[[str], V]]:
    """Decorates a function of a text: its last `size` results are kept."""

    def decorated(function: Callable[[str], V]) -> Callable[[str], V]:
        kept = lru_cache(maxsize=size)(function)

        @wraps(function)
        def recalled(text: str) -> V:
            breathe()
            return kept(text) if len(text) <= longest else function(text)

        return recalled

    return decorated
