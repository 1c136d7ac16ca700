"""The second Ctrl-C ends what runs in an event loop as a whole: no task is left, and each closes what it opened."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from learner import interrupt


def test_the_second_ctrl_c_lets_every_task_close_what_it_opened() -> None:
    said: list[str] = []
    closed: list[str] = []

    async def play(name: str) -> None:
        try:
            if name == "first":
                os.kill(os.getpid(), signal.SIGINT)
                os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            closed.append(name)

    async def main() -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                for name in ("second", "first", "third"):
                    tasks.create_task(play(name))
        finally:
            await asyncio.sleep(0)
            closed.append("all")

    with pytest.raises(KeyboardInterrupt), interrupt.first_one_waits(lambda: said.append("ending")) as interrupts:
        interrupts.run(main())
    assert said == ["ending"]
    assert sorted(closed) == ["all", "first", "second", "third"]
    assert closed[-1] == "all"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_third_ctrl_c_ends_what_does_not_end() -> None:
    async def stubborn() -> None:
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt), interrupt.first_one_waits(lambda: None) as interrupts:
        interrupts.run(stubborn())


def test_one_signal_only_asks_and_sigterm_never_does_more() -> None:
    seen: list[bool] = []

    async def until_asked() -> None:
        seen.append(interrupts.asked_to_end())
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0)
        seen.append(interrupts.asked_to_end())

    with interrupt.first_one_waits(lambda: None) as interrupts:
        interrupts.run(until_asked())
    assert seen == [False, True]
