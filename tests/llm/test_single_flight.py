"""Single flight by itself: joining, leaving, failing, and leaving nothing behind."""

from __future__ import annotations

import asyncio

from reward_server.llm.single_flight import SingleFlight
from tests.llm.asking import turns_of_the_loop


class Work:
    def __init__(self) -> None:
        self.begun = 0
        self.cancelled = 0
        self.gate = asyncio.Event()

    async def do(self) -> int:
        self.begun += 1
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return self.begun


async def test_equal_keys_share_and_others_do_not() -> None:
    flights, work = SingleFlight[int](), Work()
    asking = [asyncio.create_task(flights.do(key, work.do)) for key in ("a", "a", "b")]
    await turns_of_the_loop()
    assert work.begun == 2
    assert flights.is_under_way("a")
    work.gate.set()
    await asyncio.gather(*asking)
    await turns_of_the_loop()
    assert not flights.is_under_way("a")
    assert flights._flights == {}


async def test_an_error_reaches_everyone_and_the_next_tries_again() -> None:
    flights = SingleFlight[int]()

    async def breaks() -> int:
        await asyncio.sleep(0)
        raise ValueError("no")

    async def one() -> int:
        return 1

    outcomes = await asyncio.gather(*(flights.do("a", breaks) for _ in range(3)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [ValueError] * 3
    assert await flights.do("a", one) == 1


async def test_with_the_last_who_leaves_the_work_ends() -> None:
    flights, work = SingleFlight[int](), Work()
    asking = [asyncio.create_task(flights.do("a", work.do)) for _ in range(3)]
    await turns_of_the_loop()
    for task in asking[:2]:
        task.cancel()
    await turns_of_the_loop()
    assert work.cancelled == 0
    asking[2].cancel()
    await turns_of_the_loop()
    assert work.cancelled == 1
    assert not flights.is_under_way("a")


async def test_whoever_comes_while_it_is_being_cancelled_begins_anew() -> None:
    flights, work = SingleFlight[int](), Work()
    first = asyncio.create_task(flights.do("a", work.do))
    await turns_of_the_loop()
    first.cancel()
    second = asyncio.create_task(flights.do("a", work.do))
    await turns_of_the_loop()
    work.gate.set()
    assert await second == 2
    assert flights._flights == {}
