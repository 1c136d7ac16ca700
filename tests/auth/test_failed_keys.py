"""Addresses that send bad keys wait; everybody else does not."""

from __future__ import annotations

import pytest

from reward_server.auth import failed_keys
from reward_server.auth.failed_keys import MOST_PER_MINUTE, WINDOW_S, LocalFailedKeys
from reward_server.errors import TooManyFailedKeys


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_after_so_many_an_address_waits_and_it_is_told_once() -> None:
    time = Time()
    failed = LocalFailedKeys(time)
    told = [await failed.failed("a") for _ in range(MOST_PER_MINUTE)]
    assert told == [False] * (MOST_PER_MINUTE - 1) + [True]
    with pytest.raises(TooManyFailedKeys) as refused:
        await failed.failed("a")
    assert refused.value.retry_after_s == WINDOW_S + 1
    assert await failed.failed("b") is False
    time.now = WINDOW_S
    assert await failed.failed("a") is False


async def test_no_more_addresses_are_remembered_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failed_keys, "MOST_ADDRESSES", 3)
    failed = LocalFailedKeys(Time())
    for number in range(10):
        await failed.failed(str(number))
    assert len(failed._seen) == 3
