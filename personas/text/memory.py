"""Bounded memories of results that depend on their key alone: what was used longest ago is forgotten first.

Scoring a conversation so far reads the same turns again in every turn, so what a text means is worked out once.
Safe to share between threads: two that miss at the same time compute the same value twice. Bounded in number and in
bytes; texts that are too long are worked out anew each time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, wraps
from threading import Lock
from typing import Generic, TypeVar

from personas.text.yield_point import yield_point

K = TypeVar("K")
V = TypeVar("V")

KEPT_CHARS = 4_000
"""Longer texts are not worth their place."""
SHORT_CHARS = 400
LONG_SHARE = 8
"""Of long texts so many times fewer are kept."""
PER_VALUE_BYTES = 300
"""What a key and a value cost besides what is in them, about."""


class Memory(Generic[K, V]):
    """At most `size` values, of at most `size_bytes` by the measure of `cost`."""

    def __init__(self, size: int, *, size_bytes: int, cost: Callable[[K, V], int]) -> None:
        """`cost` gives the bytes of a key and its value, always the same for the same."""
        self._size = size
        self._size_bytes = size_bytes
        self._cost = cost
        self._held_bytes = 0
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = Lock()

    @property
    def held_bytes(self) -> int:
        """The size of all that is remembered."""
        return self._held_bytes

    def recall(self, keys: Iterable[K]) -> dict[K, V]:
        """Return what is known of the keys."""
        values, found = self._values, {}
        with self._lock:
            for key in keys:
                if key in values:
                    values.move_to_end(key)
                    found[key] = values[key]
        return found

    def keep(self, fresh: Mapping[K, V]) -> None:
        """Remember values, and forget others for them; one that is larger than all there is room for is not kept."""
        costs = {key: PER_VALUE_BYTES + self._cost(key, value) for key, value in fresh.items()}
        with self._lock:
            for key, value in fresh.items():
                self._forget(key)
                if costs[key] <= self._size_bytes:
                    self._values[key] = value
                    self._held_bytes += costs[key]
            while len(self._values) > self._size or self._held_bytes > self._size_bytes:
                self._forget(next(iter(self._values)))

    def known(self) -> list[K]:
        """The keys of what is remembered, the longest unused first."""
        with self._lock:
            return list(self._values)

    def forget(self, keys: Iterable[K]) -> int:
        """Remember these no longer; how many were."""
        with self._lock:
            before = len(self._values)
            for key in keys:
                self._forget(key)
            return before - len(self._values)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._values.clear()
            self._held_bytes = 0

    def _forget(self, key: K) -> None:
        if key in self._values:
            self._held_bytes -= PER_VALUE_BYTES + self._cost(key, self._values.pop(key))

    def __len__(self) -> int:
        return len(self._values)


def remembered(size: int, longest: int = KEPT_CHARS) -> Callable[[Callable[[str], V]], Callable[[str], V]]:
    """Decorates a function of a text: its last `size` results are kept, fewer where texts are long."""

    def decorated(function: Callable[[str], V]) -> Callable[[str], V]:
        short = lru_cache(maxsize=size)(function)
        long = lru_cache(maxsize=max(1, size // LONG_SHARE))(function)

        @wraps(function)
        def recalled(text: str) -> V:
            yield_point()
            if len(text) > longest:
                return function(text)
            return short(text) if len(text) <= SHORT_CHARS else long(text)

        return recalled

    return decorated
