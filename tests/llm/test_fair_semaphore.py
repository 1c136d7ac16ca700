"""Places: bounded, in turn between labs, never lost."""

from __future__ import annotations

import asyncio

import pytest

from reward_server.llm.fair_semaphore import FairSemaphore
from tests.llm.asking import turns_of_the_loop


async def test_a_lab_that_floods_does_not_hold_up_another() -> None:
    semaphore, served = FairSemaphore(2), list[str]()
    await semaphore.take("flood")
    await semaphore.take("flood")

    async def ask(lab_id: str, name: str) -> None:
        await semaphore.take(lab_id)
        served.append(name)

    asking = [asyncio.create_task(ask("flood", f"flood {number}")) for number in range(100)]
    asking += [asyncio.create_task(ask("small", "small")), asyncio.create_task(ask("other", "other"))]
    await turns_of_the_loop()
    assert served == []
    for _ in range(102):
        semaphore.give_back()
    await asyncio.gather(*asking)
    assert served[:5] == ["flood 0", "small", "other", "flood 1", "flood 2"]
    assert len(served) == 102


async def test_there_are_never_more_than_there_are() -> None:
    semaphore, inside, most = FairSemaphore(3), 0, 0

    async def ask(number: int) -> None:
        nonlocal inside, most
        await semaphore.take(f"lab {number % 4}")
        inside += 1
        most = max(most, inside)
        await turns_of_the_loop(2)
        inside -= 1
        semaphore.give_back()

    await asyncio.gather(*(ask(number) for number in range(50)))
    assert (most, inside) == (3, 0)


async def test_those_who_leave_are_passed_over() -> None:
    semaphore = FairSemaphore(1)
    await semaphore.take("a")
    leaving = asyncio.create_task(semaphore.take("a"))
    staying = asyncio.create_task(semaphore.take("a"))
    await turns_of_the_loop()
    leaving.cancel()
    await turns_of_the_loop()
    semaphore.give_back()
    await staying


async def test_a_place_given_to_one_who_is_just_leaving_is_not_lost() -> None:
    semaphore = FairSemaphore(1)
    await semaphore.take("a")
    leaving = asyncio.create_task(semaphore.take("a"))
    await turns_of_the_loop()
    semaphore.give_back()
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    async with asyncio.timeout(5):
        await semaphore.take("b")
