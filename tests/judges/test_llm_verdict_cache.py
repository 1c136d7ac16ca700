"""What is decided stays, in the process and beyond it; what cannot be read is not there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from reward_server.errors import StoreUnavailable
from reward_server.judges import verdict_cache
from reward_server.judges.verdict_cache import VerdictCache, key_of
from reward_server.judges.verdict_memory import VerdictMemory
from tests.judges.asked_model import KeptVerdicts


def is_list(value: Any) -> bool:
    return isinstance(value, list)


class BrokenStore(KeptVerdicts):
    async def get_many(self, keys: Any) -> dict[str, str]:
        raise StoreUnavailable

    async def put_many(self, bodies: Mapping[str, str]) -> None:
        raise StoreUnavailable

    async def replace(self, key: str, damaged: str, body: str) -> None:
        raise StoreUnavailable


def test_a_key_is_a_hash_of_all_its_parts_in_any_order() -> None:
    one = key_of({"model": "m", "text": "t"})
    assert len(one) == 64
    assert one == key_of({"text": "t", "model": "m"})
    assert len({one, key_of({"model": "m", "text": "u"}), key_of({"model": "mt", "text": ""})}) == 3


def test_revisions_are_part_of_every_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key_of({})
    monkeypatch.setattr(verdict_cache, "asking_digest", lambda: "others")
    assert key_of({}) != before


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


async def test_memory_is_bounded_by_number() -> None:
    cache = VerdictCache(memory=VerdictMemory(size=2))
    for key in "abc":
        await cache.settle(key, [key], is_list)
    assert set(await cache.get_many("abc")) == {"b", "c"}


async def test_memory_is_bounded_by_size() -> None:
    memory = VerdictMemory(size_bytes=1000)
    cache = VerdictCache(KeptVerdicts(), memory)
    for number in range(50):
        await cache.settle(str(number), ["x" * 300], is_list)
        assert memory.held_bytes <= 1000
    assert len(memory.recall(map(str, range(50)))) == 3
    await cache.settle("large", ["x" * 2000], is_list)
    assert memory.recall(["large"]) == {}
    assert len(memory.recall(map(str, range(50)))) == 3
    assert await cache.get_many(["large", "0"]) == {"large": ["x" * 2000], "0": ["x" * 300]}


def test_memory_counts_what_it_holds_and_nothing_else() -> None:
    memory = VerdictMemory(size=2, size_bytes=100)
    for key, text in (("a", "1" * 10), ("a", "1" * 20), ("b", "1" * 30), ("a", "1" * 5), ("c", "1" * 40)):
        memory.keep({key: text})
    assert memory.recall("abc") == {"a": "1" * 5, "c": "1" * 40}
    assert memory.held_bytes == 47


@pytest.mark.parametrize("damage", ["", "{", "[1", "nonsense", "null", "[" * 100_000])
async def test_what_cannot_be_read_is_not_there(damage: str) -> None:
    store = KeptVerdicts()
    store.bodies["k"] = damage
    cache = VerdictCache(store)
    assert await cache.get_many(["k"]) == {}
    assert await cache.settle("k", [2], is_list) == [2]
    assert await cache.get_many(["k"]) == {"k": [2]}


@pytest.mark.parametrize("damage", ["", "{", "null", '{"of": "another shape"}'])
async def test_what_cannot_be_used_is_replaced_for_every_process(damage: str) -> None:
    store = KeptVerdicts()
    store.bodies["k"] = damage
    cache, other = VerdictCache(store), VerdictCache(store)
    await other.get_many(["k"])
    assert await cache.settle("k", [2], is_list) == [2]
    assert await cache.get_many(["k"]) == {"k": [2]}
    assert store.bodies == {"k": "[2]"}
    assert await VerdictCache(store).get_many(["k"]) == {"k": [2]}
    assert await other.settle("k", [3], is_list) == [2]


async def test_of_two_who_replace_a_damaged_one_the_first_stays() -> None:
    class Slow(KeptVerdicts):
        async def replace(self, key: str, damaged: str, body: str) -> None:
            await super().replace(key, damaged, "[1]")  # by another process
            await super().replace(key, damaged, body)

    store = Slow()
    store.bodies["k"] = "{"
    assert await VerdictCache(store).settle("k", [2], is_list) == [1]
    assert store.bodies == {"k": "[1]"}


async def test_a_store_that_is_away_costs_a_question_and_no_answer() -> None:
    cache = VerdictCache(BrokenStore())
    assert await cache.get_many(["k"]) == {}
    assert await cache.settle("k", [1], is_list) == [1]


async def test_only_what_json_can_say_is_kept() -> None:
    with pytest.raises(ValueError, match="JSON"):
        await VerdictCache().settle("k", [float("nan")], is_list)
