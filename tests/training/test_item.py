"""What the end of a learner means for its run, and how firmly one is asked to stop."""

from __future__ import annotations

import pytest

from reward_server.errors import Unavailable
from reward_server.store.training_records import MetricRow, RunStatus
from reward_server.training.guardian import BUSY
from reward_server.training.item import LAST_PATIENCE_S, PATIENCE_S, _end, _Left, _standing, _Stopping
from reward_server.training.tail import FilePosition, TailRead

KILLED = 128 + 9


class AskedLearner:
    """Remembers what was done to it."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def interrupt(self) -> None:
        self.told.append("interrupted")

    async def end(self) -> None:
        self.told.append("ended")


@pytest.mark.parametrize(
    ("status", "was_asked", "is_late", "said", "wanted"),
    [
        (0, False, False, None, RunStatus.COMPLETE),
        (0, True, False, None, RunStatus.COMPLETE),
        (130, True, False, None, RunStatus.STOPPED),
        (KILLED, True, False, None, RunStatus.STOPPED),
        (130, True, True, None, RunStatus.FAILED),
        (2, False, False, "no such scenario", RunStatus.FAILED),
        (2, True, False, "no such scenario", RunStatus.FAILED),
        (KILLED, False, False, None, RunStatus.FAILED),
        (-9, False, False, None, RunStatus.FAILED),
        (1, False, False, None, RunStatus.FAILED),
    ],
)
def test_how_a_run_ended(status: int, was_asked: bool, is_late: bool, said: str | None, wanted: RunStatus) -> None:
    end = _end(_Left(status, was_asked=was_asked, is_late=is_late), said)
    assert end.status is wanted
    assert (end.error is None) == (wanted is not RunStatus.FAILED)
    if said is not None:
        assert end.error == said


@pytest.mark.parametrize("status", [BUSY, 130])
def test_what_may_go_better_the_next_time_is_tried_again(status: int) -> None:
    with pytest.raises(Unavailable):
        _end(_Left(status, was_asked=False, is_late=False), None)


async def test_a_learner_is_asked_twice_and_then_ended() -> None:
    learner, now = AskedLearner(), 0.0
    stopping = _Stopping(learner, lambda: now)  # type: ignore[arg-type]
    assert not stopping.began
    for pause_s, told in [
        (0.0, ["interrupted"]),
        (PATIENCE_S - 1, ["interrupted"]),
        (1.0, ["interrupted"] * 2),
        (LAST_PATIENCE_S - 1, ["interrupted"] * 2),
        (1.0, ["interrupted", "interrupted", "ended"]),
    ]:
        now += pause_s
        await stopping.go_on()
        assert learner.told == told
    assert stopping.began


def test_a_run_stands_where_its_last_records_say() -> None:
    def row(step: int, kind: str, **values: float) -> MetricRow:
        return MetricRow(step=step, kind=kind, record={"step": step, "kind": kind, **values})

    first, second = row(3, "train", **{"reward/mean": 0.25}), row(3, "eval", **{"reward/mean": 0.5})
    assert _standing(TailRead([first, second], FilePosition(), is_whole=False)) == {
        "step": 3,
        "reward": 0.25,
        "held_out_reward": 0.5,
    }
    assert _standing(TailRead([row(4, "train", loss=1.0)], FilePosition(), is_whole=False)) == {"step": 4}
    assert _standing(TailRead([], FilePosition(), is_whole=True)) == {}
