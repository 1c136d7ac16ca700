"""Addresses that send keys that are no good: after so many in a minute they are told to wait.

Good keys of the same address are not held up: whoever is behind the same proxy did nothing wrong.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from reward_server.errors import TooManyFailedKeys

MOST_PER_MINUTE = 20
WINDOW_S = 60.0
MOST_ADDRESSES = 10_000
"""Remembered; the one that failed first is forgotten then."""


class FailedKeys:
    """Counts of this process, by address."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._seen: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def failed(self, address: str) -> bool:
        """Count one; whether it is the one that uses up what the address had, once in a minute.

        Raises:
            TooManyFailedKeys: there were too many before.
        """
        now = self._monotonic()
        began, count = self._seen.get(address, (now, 0))
        if now - began >= WINDOW_S:
            began, count = now, 0
        self._seen[address] = (began, count + 1)
        self._seen.move_to_end(address)
        if len(self._seen) > MOST_ADDRESSES:
            self._seen.popitem(last=False)
        if count >= MOST_PER_MINUTE:
            raise TooManyFailedKeys(retry_after_s=int(WINDOW_S - (now - began)) + 1)
        return count + 1 == MOST_PER_MINUTE
