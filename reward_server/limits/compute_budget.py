"""Budget of characters that a lab may have read in a minute: a request costs what it holds, not that it is one.

A lab may have a budget of the day (UTC) besides; what it used today is known from `usage`.
"""

from __future__ import annotations

from reward_server.auth.lab import Lab
from reward_server.errors import ComputeExhausted
from reward_server.limits.token_bucket import TokenBuckets
from reward_server.limits.usage import UsageMeter


class ComputeBudget:
    """The budgets of all labs."""

    def __init__(self, buckets: TokenBuckets, usage: UsageMeter | None = None) -> None:
        self._buckets = buckets
        self._usage = usage

    async def charge(self, lab: Lab, characters: int, *, turns: int = 0, evaluations: int = 0) -> None:
        """Count what a request has to be read of; `ComputeExhausted` while the lab owes for earlier ones."""
        self._require_some_of_the_day(lab)
        most = lab.characters_per_minute
        if most is not None and (wait_s := await self._buckets.charge(lab.lab_id, most, characters)):
            raise ComputeExhausted(retry_after_s=wait_s)
        if self._usage is not None:
            self._usage.count(lab.lab_id, turns=turns, evaluations=evaluations, characters=characters)

    def _require_some_of_the_day(self, lab: Lab) -> None:
        most = lab.limits.characters_per_day
        if most is not None and self._usage is not None and self._usage.characters_today(lab.lab_id) >= most:
            told = "This lab has reached its daily limit of text."
            raise ComputeExhausted(told, retry_after_s=self._usage.until_tomorrow_s())
