"""Threads that labs share: whose turn it is, and how work ends that nobody wants."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError

import pytest

from personas.text.yield_point import yield_point
from reward_server.limits.fair_threads import BEGUN_PER_LAB, FairThreads, working_for

WAIT_S = 20.0


@pytest.fixture
def one() -> Iterator[FairThreads]:
    """One thread, whose turns end at the first pause."""
    threads = FairThreads(1, turn_s=0.0)
    yield threads
    threads.shutdown(cancel_futures=True)


class Held:
    """Work that goes on until it is let go, pausing all the while."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.let_go = threading.Event()

    def __call__(self) -> str:
        self.began.set()
        while not self.let_go.is_set():
            yield_point()
            time.sleep(0.0005)
        return "done"


def test_results_and_errors_arrive(one: FairThreads) -> None:
    assert one.submit(pow, 2, 10).result(WAIT_S) == 1024
    with pytest.raises(ZeroDivisionError):
        one.submit(lambda: 1 // 0).result(WAIT_S)


def test_a_long_work_of_one_lab_lets_another_lab_pass(one: FairThreads) -> None:
    long = Held()
    with working_for("acme"):
        first = one.submit(long)
    assert long.began.wait(WAIT_S)
    with working_for("zenith"):
        assert one.submit(lambda: "short").result(WAIT_S) == "short"
    assert not first.done()
    long.let_go.set()
    assert first.result(WAIT_S) == "done"


def test_it_lets_short_work_of_its_own_lab_pass_too(one: FairThreads) -> None:
    long = Held()
    with working_for("acme"):
        first, second = one.submit(long), one.submit(lambda: "short")
    assert second.result(WAIT_S) == "short"
    long.let_go.set()
    assert first.result(WAIT_S) == "done"


def test_a_lab_with_much_work_does_not_come_before_one_with_little() -> None:
    threads, order, hold = FairThreads(1), [], threading.Event()

    def work(name: str) -> Callable[[], None]:
        def run() -> None:
            begun = time.thread_time()
            while time.thread_time() - begun < 0.002:
                pass
            order.append(name)

        return run

    threads.submit(hold.wait, WAIT_S)
    futures = []
    for lab, count in (("acme", 40), ("zenith", 4)):
        with working_for(lab):
            futures += [threads.submit(work(lab)) for _ in range(count)]
    hold.set()
    for future in futures:
        future.result(WAIT_S)
    threads.shutdown()
    assert max(i for i, name in enumerate(order) if name == "zenith") < 16


def test_work_that_never_pauses_keeps_no_other_lab_out_but_its_own(one: FairThreads) -> None:
    hold = threading.Event()
    with working_for("acme"):
        stuck, behind = one.submit(hold.wait, WAIT_S), one.submit(lambda: "behind")
    with working_for("zenith"):
        assert one.submit(lambda: "short").result(WAIT_S) == "short"
    assert not behind.done()
    hold.set()
    assert stuck.result(WAIT_S)
    assert behind.result(WAIT_S) == "behind"


def test_work_that_is_given_up_ends_at_its_next_pause(one: FairThreads) -> None:
    held = Held()
    future = one.submit(held)
    assert held.began.wait(WAIT_S)
    future.cancel()
    assert one.submit(lambda: "next").result(WAIT_S) == "next"
    with pytest.raises(CancelledError):
        future.result(WAIT_S)


def test_work_that_is_given_up_before_its_turn_is_never_begun(one: FairThreads) -> None:
    held, begun = Held(), []
    first = one.submit(held)
    assert held.began.wait(WAIT_S)
    many = [one.submit(Held()) for _ in range(BEGUN_PER_LAB)]
    waiting = one.submit(begun.append, 1)
    assert waiting.cancel()
    for each in (*many, first):
        each.cancel()
    assert one.submit(lambda: "next").result(WAIT_S) == "next"
    assert begun == []


def test_no_more_than_so_many_run_at_a_time() -> None:
    threads, running, most, lock = FairThreads(2, turn_s=0.0), 0, 0, threading.Lock()

    def work() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.002)
        with lock:
            running -= 1
        yield_point()

    futures = [threads.submit(work) for _ in range(30)]
    for future in futures:
        future.result(WAIT_S)
    threads.shutdown()
    assert most == 2


def test_how_long_somebody_waits_is_known(one: FairThreads) -> None:
    hold = threading.Event()
    assert one.waiting_s == 0.0
    busy = one.submit(hold.wait, WAIT_S)
    waiting = one.submit(lambda: None)
    time.sleep(0.01)
    assert one.waiting_s >= 0.01
    hold.set()
    busy.result(WAIT_S)
    waiting.result(WAIT_S)
    assert one.waiting_s == 0.0


def test_nothing_is_taken_after_the_end(one: FairThreads) -> None:
    one.shutdown()
    with pytest.raises(RuntimeError):
        one.submit(print)
