"""Threads that labs share fairly: the next turn is that of the lab which has used the least time.

Work is taken in short turns. What has had its turn while others wait pauses where it may
(`personas.text.yield_point`) and goes on later, so a lab's long transcripts hold nobody up for longer than a moment,
and the lab's own short work neither.
Work that nobody wants any more (its future was cancelled) is not begun, or ends at its next pause. Where work does not
pause for long, a lab that has none going is given a thread beyond the number: the system shares the time out then.

An executor like any other; whose work it is says the context in which it is handed in (`working_for`).
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

from personas.text.yield_point import pauses_by

NOBODY = "-"
"""Whose work it is where nothing is said."""
TURN_S = 0.02
OVERDUE_S = 0.1
"""Work that has not paused for so long holds its place, but keeps no other lab out."""
BEGUN_PER_LAB = 8
"""So many pieces of work of one lab take turns with each other; the rest waits until one is done."""

_lab: ContextVar[str] = ContextVar("labs_working_for", default=NOBODY)


def work_for(lab_id: str) -> None:
    """From here on in this task, and in those it makes, work is this lab's."""
    _lab.set(lab_id)


def lab_at_work() -> str:
    """The lab whose work this task does."""
    return _lab.get()


@contextmanager
def working_for(lab_id: str) -> Iterator[None]:
    """In this block work is this lab's."""
    token = _lab.set(lab_id)
    try:
        yield
    finally:
        _lab.reset(token)


class WorkStopped(BaseException):
    """Ends work that was given up, at its next pause."""


class _Work(Future[Any]):
    """One piece of work."""

    def __init__(self, lab: _Lab, call: Callable[[], Any]) -> None:
        super().__init__()
        self.lab = lab
        self.call = call
        self.given_up = False
        self.goes_on = threading.Event()
        self.began_s: float | None = None
        """When it had its first turn."""
        self.waits_since = 0.0
        self.turn_s = 0.0
        """When its present turn began."""

    def cancel(self) -> bool:
        """Nobody wants it any more."""
        self.given_up = True
        return super().cancel()


@dataclass(slots=True, eq=False)
class _Lab:
    """The work that a lab waits for, and what it has used."""

    used_s: float = 0.0
    """On a clock that a lab which comes back enters with the others: what it did not use before is not saved up."""
    paused: deque[_Work] = field(default_factory=deque)
    fresh: deque[_Work] = field(default_factory=deque)
    begun: int = 0
    served_s: float = 0.0
    """When it last had a turn."""

    def next(self) -> _Work | None:
        """The work that goes on or begins, in the order of waiting; of what was not begun yet only so much."""
        may_begin = self.fresh and self.begun < BEGUN_PER_LAB
        if may_begin and (not self.paused or self.fresh[0].waits_since <= self.paused[0].waits_since):
            self.begun += 1
            return self.fresh.popleft()
        return self.paused.popleft() if self.paused else None

    @property
    def is_ready(self) -> bool:
        """True if it has anything that could have a turn."""
        return bool(self.paused) or (bool(self.fresh) and self.begun < BEGUN_PER_LAB)


class FairThreads(Executor):
    """At most so many pieces of work at a time, taking turns."""

    def __init__(self, threads: int, *, name: str = "labs-scoring", turn_s: float = TURN_S) -> None:
        self._threads = threads
        self._name = name
        self._turn_s = turn_s
        self._lock = threading.Lock()
        self._labs: dict[str, _Lab] = {}
        """Those with work; others are forgotten."""
        self._running: set[_Work] = set()
        self._held_up = threading.Event()
        """Set while somebody is ready who has no turn."""
        self._watching = False
        self._idle: deque[_Worker] = deque()
        self._numbers = itertools.count()
        self._open = True
        self._here = threading.local()
        self._clock_s = 0.0
        """The least that a lab with work has used."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have this done when it is the turn of the lab in whose context this is called."""
        lab_id = _lab.get()
        with self._lock:
            if not self._open:
                raise RuntimeError("cannot schedule new work after shutdown")
            lab = self._labs.get(lab_id)
            now = time.monotonic()
            if lab is None:
                lab = self._labs[lab_id] = _Lab(used_s=self._clock_s, served_s=now)
            work = _Work(lab, lambda: fn(*args, **kwargs))
            work.waits_since = now
            lab.fresh.append(work)
            self._hand_out()
        return work

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more work; what was begun is stopped with `cancel_futures`, and not waited for: it may take long."""
        with self._lock:
            self._open = False
            everything = [work for lab in self._labs.values() for work in (*lab.fresh, *lab.paused)]
            idle = list(self._idle)
            self._idle.clear()
            self._held_up.set()
        if cancel_futures:
            for work in everything:
                work.cancel()
                work.goes_on.set()
        for worker in idle:
            worker.take(None)

    @property
    def is_busy(self) -> bool:
        """True if anything is being done."""
        return bool(self._running)

    @property
    def waiting_s(self) -> float:
        """The longest that a lab with work has had no turn."""
        with self._lock:
            now = time.monotonic()
            heads = [
                max(lab.served_s, min(queue[0].waits_since for queue in (lab.paused, lab.fresh) if queue))
                for lab in self._labs.values()
                if lab.paused or lab.fresh
            ]
        return max((now - head for head in heads), default=0.0)

    # --- with the lock ------------------------------------------------------------------------------

    def _hand_out(self) -> None:
        while len(self._running) < self._threads and self._begin(self._ready()):
            pass
        self._lend()

    def _ready(self) -> list[_Lab]:
        return [lab for lab in self._labs.values() if lab.is_ready]

    def _lend(self) -> None:
        """A thread more for each lab that waits for others' work that does not pause; as many again at most."""
        waiting = self._ready()
        if not waiting:
            self._held_up.clear()
            return
        now = time.monotonic()
        overdue = sum(now - work.turn_s > OVERDUE_S for work in self._running)
        served = {id(work.lab) for work in self._running}
        while len(self._running) < self._threads + min(overdue, self._threads):
            if not self._begin([lab for lab in waiting if id(lab) not in served and lab.is_ready]):
                break
        self._held_up.set()
        if not self._watching and self._open:
            self._watching = True
            threading.Thread(target=self._watch, name=f"{self._name}-watch", daemon=True).start()

    def _begin(self, ready: list[_Lab]) -> bool:
        """Give the one with the least time used a turn, if there is one."""
        lab = min(ready, key=lambda candidate: candidate.used_s, default=None)
        work = lab.next() if lab is not None else None
        if lab is None or work is None:
            return False
        self._clock_s = max(self._clock_s, lab.used_s)
        self._running.add(work)
        work.turn_s = lab.served_s = time.monotonic()
        if work.began_s is not None:
            work.goes_on.set()
            return True
        work.began_s = work.turn_s
        # The one that worked last: what it needs is still in the processor's cache.
        worker = self._idle.pop() if self._idle else _Worker(self, f"{self._name}-{next(self._numbers)}")
        worker.take(work)
        return True

    def _turn_ends(self, work: _Work, used_s: float) -> None:
        work.lab.used_s += used_s
        work.lab.served_s = time.monotonic()
        self._running.discard(work)

    def _forget_if_done(self, lab: _Lab) -> None:
        if not (lab.fresh or lab.paused or lab.begun):
            self._labs = {name: entry for name, entry in self._labs.items() if entry is not lab}

    def _watch(self) -> None:
        """Look after those who wait for work that does not pause: nothing else would tell."""
        while self._open:
            self._held_up.wait()
            time.sleep(OVERDUE_S / 2)
            with self._lock:
                self._lend()

    # --- in a thread of ours --------------------------------------------------------------------------

    def run(self, work: _Work, worker: _Worker) -> None:
        """Do one piece of work, with pauses; the worker then waits for its next."""
        self._here.work = work
        self._turn_begins()
        outcome: Any = None
        failure: BaseException | None = None
        wanted = work.set_running_or_notify_cancel()
        if wanted:
            try:
                outcome = work.call()
            except WorkStopped:
                failure = CancelledError()
            except BaseException as error:  # noqa: BLE001 (handed to whoever waits)
                failure = error
        self._here.work = None
        with self._lock:
            self._turn_ends(work, time.thread_time() - self._here.since)
            work.lab.begun -= 1
            self._forget_if_done(work.lab)
            if self._open:
                self._idle.append(worker)
            else:
                worker.take(None)
            self._hand_out()
        if failure is not None:
            work.set_exception(failure)
        elif wanted:
            work.set_result(outcome)

    def pause(self) -> None:
        """Let others have their turn, if it is over and they wait; `WorkStopped` where nobody wants the result."""
        work: _Work | None = getattr(self._here, "work", None)
        if work is None:
            return
        if work.given_up:
            raise WorkStopped
        now = time.monotonic()
        if now < self._here.not_over_before:
            return
        used = time.thread_time() - self._here.since
        if used < self._turn_s:
            self._here.not_over_before = now + self._turn_s - used
            return
        with self._lock:
            if not any(lab.is_ready for lab in self._labs.values()):
                work.lab.used_s += used
                work.turn_s = now
                self._turn_begins()
                return
            work.goes_on.clear()
            work.waits_since = now
            self._turn_ends(work, used)
            work.lab.paused.append(work)
            self._hand_out()
        work.goes_on.wait()
        self._turn_begins()
        if work.given_up:
            raise WorkStopped

    def _turn_begins(self) -> None:
        """Note since when this thread works on a turn, and how long it cannot be over.

        Pauses come every few microseconds, and a thread's own clock takes longer than that to read. It never runs ahead
        of the other one.
        """
        self._here.since = time.thread_time()
        self._here.not_over_before = time.monotonic() + self._turn_s


class _Worker:
    """A thread that does one piece of work after the other."""

    def __init__(self, threads: FairThreads, name: str) -> None:
        self._threads = threads
        self._given: SimpleQueue[_Work | None] = SimpleQueue()
        # A daemon: reading a long text shall not keep a server from ending.
        threading.Thread(target=self._serve, name=name, daemon=True).start()

    def take(self, work: _Work | None) -> None:
        """Do this next; None ends the thread."""
        self._given.put(work)

    def _serve(self) -> None:
        pauses_by(self._threads.pause)
        while True:
            work = self._given.get()
            if work is None:
                return
            self._threads.run(work, self)
            del work
