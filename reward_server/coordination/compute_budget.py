"""How much a lab may have read in a minute, in characters: what a request costs is what it holds, not that it is one.

A bucket that fills steadily up to a minute's worth. A request may take more than is left, which the lab then owes:
however large a request may be, there comes a time for it. Counted in this process.
A lab may have a budget of the day (UTC) besides; what it used today is known from `usage`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from reward_server.coordination.lab import Lab
from reward_server.coordination.usage import UsageMeter
from reward_server.errors import ComputeExhausted

FORGET_BEYOND = 10_000
"""Labs; those whose bucket is full are forgotten then, which changes nothing for them."""


@dataclass(slots=True)
class _Bucket:
    level: float
    seen_s: float


class ComputeBudget:
    """The buckets of all labs."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic, usage: UsageMeter | None = None) -> None:
        self._monotonic = monotonic
        self._usage = usage
        self._buckets: dict[str, _Bucket] = {}

    def charge(self, lab: Lab, characters: int, *, turns: int = 0, evaluations: int = 0) -> None:
        """Count what a request has to be read of; `ComputeExhausted` while the lab owes for earlier ones."""
        self._require_some_of_the_day(lab)
        self._charge_minute(lab, characters)
        if self._usage is not None:
            self._usage.count(lab.lab_id, turns=turns, evaluations=evaluations, characters=characters)

    def _require_some_of_the_day(self, lab: Lab) -> None:
        most = lab.limits.characters_per_day
        if most is not None and self._usage is not None and self._usage.characters_today(lab.lab_id) >= most:
            told = "This lab has had as much text read today as it may."
            raise ComputeExhausted(told, retry_after_s=self._usage.until_tomorrow_s())

    def _charge_minute(self, lab: Lab, characters: int) -> None:
        most = lab.characters_per_minute
        if most is None:
            return
        now = self._monotonic()
        bucket = self._buckets.get(lab.lab_id)
        if bucket is None:
            self._forget_full(now)
            bucket = self._buckets[lab.lab_id] = _Bucket(float(most), now)
        # Keys of one lab may have plans of their own: each fills the lab's bucket at its own pace when it is used.
        bucket.level = min(float(most), bucket.level + (now - bucket.seen_s) * most / 60.0)
        bucket.seen_s = now
        if bucket.level <= 0:
            raise ComputeExhausted(retry_after_s=math.floor(-bucket.level * 60.0 / most) + 1)
        bucket.level -= characters

    def _forget_full(self, now: float) -> None:
        if len(self._buckets) >= FORGET_BEYOND:
            self._buckets = {name: each for name, each in self._buckets.items() if now - each.seen_s < 60.0}
