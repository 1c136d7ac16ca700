"""The queue in front of the encoders: what is shared, who waits for whom, what failures and cancellations cost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock, Semaphore

import numpy as np
import pytest

from reward_server.encoders.encoder import TOKENS_PER_BATCH, TextEncoder, Vectors
from reward_server.encoders.loading import load_encoder
from reward_server.encoders.micro_batcher import MicroBatcher, usable
from reward_server.errors import LabsError, NotReady, Overloaded

LONG_S = 30.0


class GatedEncoder:
    """A text's vector is (its length, 1); a text that starts with `bad` fails; `hold` keeps batches from ending."""

    version = "gated/1"
    width = 2

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.started = Semaphore(0)
        self.free = Event()
        self.free.set()
        self._lock = Lock()

    def hold(self) -> None:
        self.free.clear()

    def encode(self, texts: Sequence[str]) -> Vectors:
        with self._lock:
            self.batches.append(list(texts))
        self.started.release()
        assert self.free.wait(LONG_S)
        if any(text.startswith("bad") for text in texts):
            raise ValueError("a text that may not be quoted")
        return np.array([[len(text), 1.0] for text in texts], dtype=np.float32).reshape(-1, 2)


@pytest.fixture
def encoder() -> GatedEncoder:
    return GatedEncoder()


@pytest.fixture
def batcher(encoder: GatedEncoder) -> Iterator[MicroBatcher]:
    """One worker, so that the order of batches is known."""
    batcher = MicroBatcher(workers=1, most_waiting=1000, light_alone=False)
    yield batcher
    encoder.free.set()
    batcher.close()


def _busy(batcher: MicroBatcher, encoder: GatedEncoder) -> None:
    """The only worker is in a batch that does not end."""
    encoder.hold()
    batcher.submit(encoder, ["first"])
    assert encoder.started.acquire(timeout=LONG_S)


def test_rows_come_back_in_the_order_of_the_call(batcher: MicroBatcher, encoder: GatedEncoder) -> None:
    texts = ["four", "a", "ninety" * 15, "a"]
    assert batcher.over(encoder).encode(texts).tolist() == [[4.0, 1.0], [1.0, 1.0], [90.0, 1.0], [1.0, 1.0]]
    assert batcher.over(encoder).encode([]).shape == (0, 2)


def test_what_queued_during_a_batch_is_the_next_batch(batcher: MicroBatcher, encoder: GatedEncoder) -> None:
    _busy(batcher, encoder)
    futures = [batcher.submit(encoder, [f"text {number}"]) for number in range(20)]
    encoder.free.set()
    assert all(future.result(LONG_S) for future in futures)
    assert [len(batch) for batch in encoder.batches] == [1, 20]


def test_the_same_text_is_computed_once_for_all_who_want_it(batcher: MicroBatcher, encoder: GatedEncoder) -> None:
    _busy(batcher, encoder)
    futures = [batcher.submit(encoder, ["shared", "first", f"own {number}"]) for number in range(5)]
    encoder.free.set()
    for future in futures:
        assert future.result(LONG_S)["shared"].tolist() == [6.0, 1.0]
    computed = [text for batch in encoder.batches for text in batch]
    assert sorted(computed) == sorted({"first", "shared", *(f"own {number}" for number in range(5))})


def test_ten_thousand_texts_of_one_caller_do_not_starve_another(encoder: GatedEncoder) -> None:
    batcher = MicroBatcher(workers=1, light_alone=False)
    _busy(batcher, encoder)
    many = batcher.submit(encoder, [f"one of very many texts, number {number}" for number in range(10_000)])
    one = batcher.submit(encoder, ["the only text of somebody else"])
    encoder.free.set()
    assert one.result(LONG_S)
    assert "the only text of somebody else" in encoder.batches[1]
    assert len(many.result(LONG_S)) == 10_000
    assert max(sum(len(text) // 4 + 2 for text in batch) for batch in encoder.batches) <= TOKENS_PER_BATCH
    batcher.close()


MANY = [f"one of very many texts, number {number}" for number in range(1_000)]


def test_who_wants_little_has_every_other_batch_alone(encoder: GatedEncoder) -> None:
    batcher = MicroBatcher(workers=1, light_alone=False)
    _busy(batcher, encoder)
    batcher.submit(encoder, MANY)
    little = [batcher.submit(encoder, [f"a turn, {number}"]) for number in range(3)]
    encoder.free.set()
    assert all(one.result(LONG_S) for one in little)
    assert sorted(encoder.batches[1]) == [f"a turn, {number}" for number in range(3)]
    batcher.close()
    assert sum(map(len, encoder.batches)) == len(MANY) + 4


def test_who_wants_little_does_not_wait_for_those_who_want_much(encoder: GatedEncoder) -> None:
    batcher = MicroBatcher(workers=1)
    encoder.hold()
    batcher.submit(encoder, MANY)
    assert encoder.started.acquire(timeout=LONG_S)
    little = batcher.submit(encoder, ["a turn"])
    assert encoder.started.acquire(timeout=LONG_S)
    assert encoder.batches[1:] == [["a turn"]]
    encoder.free.set()
    assert little.result(LONG_S)
    batcher.close()


def test_many_who_want_little_are_served_by_all_threads(encoder: GatedEncoder) -> None:
    batcher = MicroBatcher(workers=2)
    encoder.hold()
    turns = [batcher.submit(encoder, [f"{'word ' * 60} {number}"]) for number in range(24)]
    for _ in range(3):
        assert encoder.started.acquire(timeout=LONG_S)
    encoder.free.set()
    assert all(turn.result(LONG_S) for turn in turns)
    batcher.close()


def test_work_goes_on_where_all_that_the_light_ones_want_is_on_its_way(encoder: GatedEncoder) -> None:
    encoder.batch_tokens = 1  # type: ignore[attr-defined]
    batcher = MicroBatcher(workers=1, light_alone=False)
    _busy(batcher, encoder)
    first = batcher.submit(encoder, ["a turn"])
    many = batcher.submit(encoder, ["x", *MANY[:60]])
    shared = batcher.submit(encoder, ["x"])
    encoder.free.set()
    assert [len(each.result(LONG_S)) for each in (first, many, shared)] == [1, 61, 1]
    assert encoder.batches[1:3] == [["a turn"], ["x"]]
    batcher.close()


def test_there_are_no_more_threads_than_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0})
    assert (usable(2), usable(1)) == (1, 1)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1, 2})
    assert usable(2) == 2


def test_an_encoder_may_take_more_at_once(encoder: GatedEncoder) -> None:
    encoder.batch_tokens = 2 * TOKENS_PER_BATCH  # type: ignore[attr-defined]
    batcher = MicroBatcher(workers=1, light_alone=False)
    _busy(batcher, encoder)
    many = batcher.submit(encoder, [f"one of very many texts, number {number}" for number in range(3_000)])
    encoder.free.set()
    assert len(many.result(LONG_S)) == 3_000
    sizes = [sum(len(text) // 4 + 2 for text in batch) for batch in encoder.batches]
    assert TOKENS_PER_BATCH < max(sizes) <= 2 * TOKENS_PER_BATCH
    batcher.close()


def test_a_shared_text_does_not_wait_in_the_longer_queue(batcher: MicroBatcher, encoder: GatedEncoder) -> None:
    _busy(batcher, encoder)
    shared = "z" * 4000  # the longest, hence the last of the many
    batcher.submit(encoder, [*(f"{'long ' * 90} {number}" for number in range(200)), shared])
    one = batcher.submit(encoder, [shared])
    encoder.free.set()
    assert one.result(LONG_S)
    assert shared in encoder.batches[1]


def test_a_failing_text_fails_its_callers_alone(batcher: MicroBatcher, encoder: GatedEncoder) -> None:
    _busy(batcher, encoder)
    good = batcher.submit(encoder, ["fine", "shared"])
    bad = batcher.submit(encoder, ["shared", "bad one", "more"])
    encoder.free.set()
    assert sorted(good.result(LONG_S)) == ["fine", "shared"]
    with pytest.raises(LabsError) as caught:
        bad.result(LONG_S)
    assert "quoted" not in str(caught.value)
    assert batcher.over(encoder).encode(["after"]).tolist() == [[5.0, 1.0]]


def test_cancelled_callers_withdraw_what_nobody_else_wants(batcher: MicroBatcher, encoder: GatedEncoder) -> None:
    async def leave() -> None:
        waiting = asyncio.create_task(batcher.over(encoder).encoded(["only mine", "shared"]))
        await asyncio.sleep(0)
        assert batcher.waiting == 3
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    _busy(batcher, encoder)
    stays = batcher.submit(encoder, ["shared", "other"])
    asyncio.run(leave())
    assert batcher.waiting == 2
    encoder.free.set()
    assert sorted(stays.result(LONG_S)) == ["other", "shared"]
    assert [sorted(batch) for batch in encoder.batches] == [["first"], ["other", "shared"]]


def test_a_full_queue_refuses_and_recovers(batcher: MicroBatcher, encoder: GatedEncoder) -> None:
    _busy(batcher, encoder)
    kept = batcher.submit(encoder, [f"text {number}" for number in range(999)])
    with pytest.raises(Overloaded):
        batcher.submit(encoder, ["two", "more"])
    encoder.free.set()
    assert len(kept.result(LONG_S)) == 999
    assert len(batcher.submit(encoder, [f"again {number}" for number in range(1500)]).result(LONG_S)) == 1500


def test_closing_computes_what_waits_and_takes_no_more(encoder: GatedEncoder) -> None:
    batcher = MicroBatcher(workers=2)
    encoder.hold()
    futures = [batcher.submit(encoder, [f"text {number}"]) for number in range(50)]
    with ThreadPoolExecutor(1) as thread:
        closing = thread.submit(batcher.close)
        encoder.free.set()
        closing.result(LONG_S)
    assert all(future.done() for future in futures)
    with pytest.raises(NotReady):
        batcher.submit(encoder, ["late"])


def test_two_workers_with_nothing_to_do_split_the_work(encoder: GatedEncoder) -> None:
    batcher = MicroBatcher(workers=2)
    encoder.hold()
    future = batcher.submit(encoder, [f"{'word ' * 40} {number}" for number in range(40)])
    for _ in range(2):  # the second worker takes its half while the first is in its own
        assert encoder.started.acquire(timeout=LONG_S)
    encoder.free.set()
    future.result(LONG_S)
    assert 15 <= len(encoder.batches[0]) <= 25
    batcher.close()


def test_batches_hold_texts_of_one_encoder(batcher: MicroBatcher, encoder: GatedEncoder) -> None:
    other = GatedEncoder()
    _busy(batcher, encoder)
    here = batcher.submit(encoder, ["same text", "here"])
    there = batcher.submit(other, ["same text", "there"])
    encoder.free.set()
    assert sorted(here.result(LONG_S)) == ["here", "same text"]
    assert sorted(there.result(LONG_S)) == ["same text", "there"]
    assert sorted(text for batch in other.batches for text in batch) == ["same text", "there"]


def test_vectors_are_bitwise_those_of_the_encoder() -> None:
    encoder: TextEncoder = load_encoder()
    batcher = MicroBatcher(workers=2)
    batched = batcher.over(encoder)
    texts = [f"What happened on day {number}" + " and then" * (number % 7) + "?" for number in range(60)]

    async def concurrently() -> list[Vectors]:
        return await asyncio.gather(*(batched.encoded(texts[start : start + 6]) for start in range(0, 60, 3)))

    alone = {text: encoder.encode([text])[0] for text in texts}
    for start, vectors in zip(range(0, 60, 3), asyncio.run(concurrently()), strict=True):
        for text, vector in zip(texts[start : start + 6], vectors, strict=True):
            assert np.array_equal(vector, alone[text])
    assert (batched.version, batched.width) == (encoder.version, encoder.width)
    batcher.close()
