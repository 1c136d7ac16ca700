"""One place where texts are encoded, for all requests and all encoders of a server: micro-batching without a timer.

Callers put texts in a queue; worker threads take what queued while their last batch ran, up to a token budget, so
an idle server answers at once and a busy one fills its batches. Callers take turns, text by text: ten thousand texts
of one do not keep another waiting for more than a batch. Who wants little has a thread of its own, which the system
prefers to the others. A text that several want is computed once; one that nobody wants any more is not computed.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Condition, Thread, get_native_id

import numpy as np

from reward_server.encoders.encoder import TextEncoder, Vectors, batch_tokens, meaning_width
from reward_server.errors import LabsError, NotReady, Overloaded

WORKERS = 2
LIGHT_TOKENS = 128
"""A caller with no more than this (a turn, say) is served before those with more: by a thread of its own, and by the
others every other batch."""
NICE = 5
"""By so much the threads for everybody stand behind the rest of the server: a third of a core where all want one."""
WORTH_SPLITTING = 512
"""A batch of fewer tokens is not shared with a worker that has nothing to do."""
MOST_WAITING = 100_000
CHARS_PER_TOKEN, MARKS, LONGEST = 4, 2, 512


@dataclass(eq=False, slots=True)
class _Job:
    """One text for one encoder, wanted by at least one caller until it is taken."""

    encoder: TextEncoder
    text: str
    tokens: int
    calls: list[_Call] = field(default_factory=list)
    taken: bool = False


@dataclass(eq=False, slots=True)
class _Call:
    """The texts that one caller waits for."""

    waiting: deque[_Job]
    missing: int
    is_light: bool = False
    vectors: dict[str, Vectors] = field(default_factory=dict)
    answer: Future[Mapping[str, Vectors]] = field(default_factory=Future)


class MicroBatcher:
    """Worker threads and the queue they share."""

    def __init__(
        self, workers: int | None = None, most_waiting: int = MOST_WAITING, *, light_alone: bool = True
    ) -> None:
        """Start the threads.

        Args:
            workers: threads that compute for everybody, one core each; by default 2, or 1 where this process may use
                one core.
            most_waiting: so many texts may be in the queue; a single call of more is taken by an idle server.
            light_alone: whether one more thread computes for those alone who want little.
        """
        self._most_waiting = most_waiting
        self._changed = Condition()
        self._ring: deque[_Call] = deque()
        self._jobs: dict[tuple[TextEncoder, str], _Job] = {}
        self._waiting_texts = self._waiting_tokens = self._idle = 0
        self._open = True
        self._light_next = True
        self._light_is_idle = False
        self._threads = [
            Thread(target=self._work, name=f"labs-encoding-{n}", daemon=True) for n in range(workers or usable(WORKERS))
        ]
        if light_alone:
            self._threads.append(Thread(target=self._work_lightly, name="labs-encoding-light", daemon=True))
        for thread in self._threads:
            thread.start()

    def over(self, encoder: TextEncoder) -> BatchedEncoder:
        """The encoder, computing in this batcher's threads."""
        return BatchedEncoder(self, encoder)

    def submit(self, encoder: TextEncoder, texts: Sequence[str]) -> Future[Mapping[str, Vectors]]:
        """The vector of each text, by text; cancelling the future withdraws the texts.

        Raises:
            Overloaded: too many texts are waiting.
            NotReady: the batcher is closed.
        """
        wanted = dict.fromkeys(texts)
        call = _Call(deque(), len(wanted))
        if not wanted:
            call.answer.set_result({})
            return call.answer
        with self._changed:
            if not self._open:
                raise NotReady
            if self._waiting_texts and self._waiting_texts + len(wanted) > self._most_waiting:
                raise Overloaded
            jobs = [self._job(encoder, text, call) for text in wanted]
            # Neighbours of one length are computed in one product.
            call.waiting.extend(sorted((job for job in jobs if not job.taken), key=lambda job: job.tokens))
            call.is_light = sum(job.tokens for job in call.waiting) <= LIGHT_TOKENS
            if call.waiting:
                self._ring.append(call)
                self._changed.notify_all()
        call.answer.add_done_callback(lambda answer: self._withdraw(call) if answer.cancelled() else None)
        return call.answer

    def close(self) -> None:
        """Take no more texts, and return when those that wait are computed."""
        with self._changed:
            self._open = False
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    @property
    def waiting(self) -> int:
        """Texts in the queue."""
        return self._waiting_texts

    # --- the queue; the caller holds the lock -------------------------------------------------------

    def _job(self, encoder: TextEncoder, text: str, call: _Call) -> _Job:
        job = self._jobs.get((encoder, text))
        if job is None:
            job = _Job(encoder, text, min(len(text) // CHARS_PER_TOKEN + MARKS, LONGEST))
            self._jobs[encoder, text] = job
            self._waiting_texts += 1
            self._waiting_tokens += job.tokens
        job.calls.append(call)
        return job

    def _forget(self, job: _Job) -> None:
        """It is no longer waiting."""
        self._waiting_texts -= 1
        self._waiting_tokens -= job.tokens

    def _take(self, *, heavy: bool = True) -> list[_Job]:
        """The next batch: the callers' texts in turn, all for the encoder of the first.

        Where some want little and others much, every other batch is of the former alone: it is over sooner.

        Args:
            heavy: for a thread that serves everybody; it leaves those who want little to their own thread while that
                has nothing to do.
        """
        if not heavy:
            return self._batch_of(lambda call: call.is_light)
        if self._light_is_idle:
            return self._batch_of(lambda call: not call.is_light)
        light_alone = self._light_next and len({call.is_light for call in self._ring}) == 2
        self._light_next = not light_alone
        # What the light ones wait for may all be on its way already.
        return self._batch_of(lambda call: call.is_light or not light_alone) or self._batch_of(lambda call: True)

    def _batch_of(self, is_in: Callable[[_Call], bool]) -> list[_Job]:
        """A batch for these callers, who then stand behind the others; the rest keeps its place."""
        budget = max(WORTH_SPLITTING, self._waiting_tokens // (1 + self._idle))
        batch: list[_Job] = []
        passed: deque[_Call] = deque()
        while self._ring and budget > 0:
            call = self._ring.popleft()
            job = _next_job(call, batch[0].encoder if batch else None) if is_in(call) else None
            if job is not None and (not batch or job.tokens <= budget):
                call.waiting.popleft()
                job.taken = True
                self._forget(job)
                budget = budget if batch else min(budget, batch_tokens(job.encoder))
                batch.append(job)
                budget -= job.tokens
                self._ring.append(call)
            elif call.waiting:
                passed.append(call)
        self._ring.extendleft(reversed(passed))
        return batch

    def _withdraw(self, call: _Call) -> None:
        with self._changed:
            for job in call.waiting:
                job.calls = [other for other in job.calls if other is not call]
                if not job.calls and not job.taken:
                    job.taken = True
                    self._forget(job)
                    del self._jobs[job.encoder, job.text]
            call.waiting.clear()
            with suppress(ValueError):
                self._ring.remove(call)

    # --- in a worker thread -------------------------------------------------------------------------

    def _work(self) -> None:
        step_back(NICE)
        while batch := self._await_batch():
            self._compute(batch)

    def _work_lightly(self) -> None:
        while batch := self._await_light_batch():
            self._compute(batch)

    def _await_batch(self) -> list[_Job]:
        with self._changed:
            while True:
                if batch := self._take():
                    return batch
                if not self._open:
                    return []
                self._idle += 1
                self._changed.wait()
                self._idle -= 1

    def _await_light_batch(self) -> list[_Job]:
        with self._changed:
            while True:
                if batch := self._take(heavy=False):
                    return batch
                if not self._open:
                    return []
                self._light_is_idle = True
                self._changed.wait()
                self._light_is_idle = False
                # The others left these texts to this thread, which cannot take all of many.
                self._changed.notify_all()

    def _compute(self, batch: Sequence[_Job]) -> None:
        self._deliver(zip(batch, _outcomes(batch[0].encoder, batch), strict=True))

    def _deliver(self, computed: Iterable[tuple[_Job, Vectors | Exception]]) -> None:
        settled: list[tuple[_Call, Exception | None]] = []
        with self._changed:
            for job, outcome in computed:
                del self._jobs[job.encoder, job.text]
                for call in job.calls:
                    call.missing -= 1
                    if isinstance(outcome, Exception):
                        settled.append((call, outcome))
                    else:
                        call.vectors[job.text] = outcome
                        if not call.missing:
                            settled.append((call, None))
        for call, error in settled:
            with suppress(InvalidStateError):  # it was cancelled in this moment, or another of its texts failed
                if error is None:
                    call.answer.set_result(call.vectors)
                else:
                    call.answer.set_exception(error)
                    self._withdraw(call)


class BatchedEncoder:
    """`TextEncoder` whose texts share batches with those of all other callers; blocking or awaited."""

    def __init__(self, batcher: MicroBatcher, encoder: TextEncoder) -> None:
        self._batcher = batcher
        self._encoder = encoder

    @property
    def version(self) -> str:
        """That of the encoder: batching changes no vector."""
        return self._encoder.version

    @property
    def width(self) -> int:
        """The length of a vector."""
        return self._encoder.width

    @property
    def meaning(self) -> int:
        """The number of values at the head of a vector that are the unit vector."""
        return meaning_width(self._encoder)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, shape (len(texts), width); blocks, so never on an event loop."""
        return self._stacked(texts, self._batcher.submit(self._encoder, texts).result())

    async def encoded(self, texts: Sequence[str]) -> Vectors:
        """As `encode`; a caller that is cancelled withdraws its texts."""
        return self._stacked(texts, await asyncio.wrap_future(self._batcher.submit(self._encoder, texts)))

    def _stacked(self, texts: Sequence[str], vectors: Mapping[str, Vectors]) -> Vectors:
        stacked = np.empty((len(texts), self.width), dtype=np.float32)
        for index, text in enumerate(texts):
            stacked[index] = vectors[text]
        return stacked


def step_back(steps: int) -> None:
    """Let the system prefer other threads to this one, where it can tell threads apart."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, get_native_id(), steps)


def usable(threads: int) -> int:
    """So many of these threads as there are cores for: two on one core spoil each other's caches."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(threads, cores))


def _next_job(call: _Call, encoder: TextEncoder | None) -> _Job | None:
    """The first of a caller's texts that nobody took, if it is for the encoder."""
    while call.waiting and call.waiting[0].taken:
        call.waiting.popleft()
    if not call.waiting or (encoder is not None and call.waiting[0].encoder is not encoder):
        return None
    return call.waiting[0]


def _outcomes(encoder: TextEncoder, batch: Sequence[_Job]) -> list[Vectors | Exception]:
    """A vector or what went wrong for each text; if a batch fails, each text gets a chance of its own."""
    try:
        vectors = encoder.encode([job.text for job in batch])
        return [vectors[index] for index in range(len(batch))]
    except Exception as error:  # noqa: BLE001 (a job boundary: the threads serve everyone)
        if len(batch) == 1:
            return [error if isinstance(error, LabsError) else LabsError()]
        return [outcome for job in batch for outcome in _outcomes(encoder, [job])]
