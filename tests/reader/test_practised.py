"""What is measured on practice cases is what a reader makes of them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from personas.case.compiled import CompiledCase
from personas.reading.acts import Act, ReadCandidate, Reading, Sentence, Stance
from personas.reading.reader import Reader, Turn
from reward_server.fitting.reader.evaluate import table
from reward_server.fitting.reader.practised import ALL, practised
from scenarios.practice import HELD_OUT, PracticeCase, load_practice
from scenarios.turns import LabelledTurn

ASKING = frozenset({"specific", "double", "open"})


class Told(Reader):
    """Reads each turn as its label says, or takes each near miss for what it is near to and hears nothing else."""

    version = "told"

    def __init__(self, case: PracticeCase, *, right: bool) -> None:
        self._turns = {turn.turn: turn for turn in case.turns}
        self._right = right

    def read(self, case: CompiledCase, turns: Sequence[Turn]) -> list[Reading]:
        return [Reading((self._sentence(self._turns[text]),)) for _, text in turns]

    def _sentence(self, turn: LabelledTurn) -> Sentence:
        if self._right:
            asks = tuple(ReadCandidate(name, 0.99) for name in turn.asks if turn.kind in ASKING)
            made = tuple(ReadCandidate(name, 0.999) for name in turn.commits)
            return Sentence(turn.turn.rstrip("?"), _acts(turn), Stance.ASSERTED, asks, made)
        near = () if turn.near is None else (ReadCandidate(turn.near, 0.999),)
        return Sentence(turn.turn.rstrip("?"), frozenset({Act.PROPOSE}), Stance.ASSERTED, (), near)

    def beside(self, case: CompiledCase, line: str, said: Sequence[Sentence]) -> list[tuple[ReadCandidate, ...]]:
        found = (self._turns.get(each.text) or self._turns[each.text + "?"] for each in said)
        return [tuple(ReadCandidate(name, 0.99) for name in turn.asks if self._right) for turn in found]


def _acts(turn: LabelledTurn) -> frozenset[Act]:
    return frozenset({Act.ASK} if turn.kind in {*ASKING, "background"} else {Act.PROPOSE})


@pytest.fixture(scope="module")
def case() -> PracticeCase:
    return next(case for case in load_practice() if case.held_out)


def test_who_reads_every_label_has_full_marks(case: PracticeCase) -> None:
    found = {name: share.value for name, share in practised(Told(case, right=True), [case])[ALL].items()}
    for name in ("specific understood", "follow-up understood", "own background used", "breach fires", "credit heard"):
        assert found[name] == 1.0, name
    for name in ("specific wrong", "near breach fires", "near credit taken", "other turn fires a breach"):
        assert found[name] == 0.0, name


def test_who_takes_near_misses_for_commitments_is_found_out(case: PracticeCase) -> None:
    found = practised(Told(case, right=False), [case])[ALL]
    assert found["near breach fires"].value == found["near credit taken"].value == 1.0
    assert found["breach fires"].value == found["credit heard"].value == found["specific understood"].value == 0.0
    assert f"| near breach fires ({found['near breach fires'].of}) | 100% | 100% |" in table(
        practised(Told(case, right=False), [case])
    )


def test_the_domains_kept_aside_have_cases() -> None:
    assert {case.domain for case in load_practice() if case.held_out} == HELD_OUT
