"""What is decided stays, in the process and beyond it; what cannot be read is not there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from reward_server.errors import StoreUnavailable
from reward_server.judges.verdict_cache import VerdictCache, key_of
from tests.judges.asked_model import KeptVerdicts


def is_list(value: Any) -> bool:
    return isinstance(value, list)


class BrokenStore(KeptVerdicts):
    async def get_many(self, keys: Any) -> dict[str, str]:
        raise StoreUnavailable

    async def put_many(self, bodies: Mapping[str, str]) -> None:
        raise StoreUnavailable


def test_a_key_is_a_hash_of_all_its_parts_in_any_order() -> None:
    one = key_of({"model": "m", "text": "t"})
    assert len(one) == 64
    assert one == key_of({"text": "t", "model": "m"})
    assert len({one, key_of({"model": "m", "text": "u"}), key_of({"model": "mt", "text": ""})}) == 3


async def test_the_first_decision_stays() -> None:
    cache = VerdictCache()
    assert await cache.settle("k", [1], is_list) == [1]
    assert await cache.settle("k", [2], is_list) == [1]
    assert await cache.get_many(["k", "other"]) == {"k": [1]}


async def test_a_decision_outlives_the_process() -> None:
    store = KeptVerdicts()
    await VerdictCache(store).settle("k", [1], is_list)
    assert await VerdictCache(store).get_many(["k"]) == {"k": [1]}


async def test_another_process_that_was_faster_is_right() -> None:
    store = KeptVerdicts()
    slow = VerdictCache(store)
    await slow.get_many(["k"])
    await VerdictCache(store).settle("k", [1], is_list)
    assert await slow.settle("k", [2], is_list) == [1]
    assert await slow.get_many(["k"]) == {"k": [1]}


async def test_nobody_is_told_a_decision_that_will_not_stay() -> None:
    heard: list[Any] = []

    class SlowStore(KeptVerdicts):
        async def put_many(self, bodies: Mapping[str, str]) -> None:
            self.bodies["k"] = "[1]"  # by another process
            heard.append(await cache.get_many(["k"]))

    cache = VerdictCache(SlowStore())
    assert await cache.settle("k", [2], is_list) == [1]
    assert heard == [{"k": [1]}]


async def test_memory_is_bounded() -> None:
    cache = VerdictCache(size=2)
    for key in "abc":
        await cache.settle(key, [key], is_list)
    assert set(await cache.get_many("abc")) == {"b", "c"}


@pytest.mark.parametrize("damage", ["", "{", "[1", "nonsense", "null", "[" * 100_000])
async def test_what_cannot_be_read_is_not_there(damage: str) -> None:
    store = KeptVerdicts()
    store.bodies["k"] = damage
    cache = VerdictCache(store)
    assert await cache.get_many(["k"]) == {}
    assert await cache.settle("k", [2], is_list) == [2]
    assert await cache.get_many(["k"]) == {"k": [2]}


async def test_what_cannot_be_used_is_replaced() -> None:
    store = KeptVerdicts()
    store.bodies["k"] = '{"of": "another shape"}'
    cache = VerdictCache(store)
    assert await cache.get_many(["k"]) == {"k": {"of": "another shape"}}
    assert await cache.settle("k", [2], is_list) == [2]
    assert await cache.get_many(["k"]) == {"k": [2]}


async def test_a_store_that_is_away_costs_a_question_and_no_answer() -> None:
    cache = VerdictCache(BrokenStore())
    assert await cache.get_many(["k"]) == {}
    assert await cache.settle("k", [1], is_list) == [1]


async def test_only_what_json_can_say_is_kept() -> None:
    with pytest.raises(ValueError, match="JSON"):
        await VerdictCache().settle("k", [float("nan")], is_list)
