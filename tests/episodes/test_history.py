"""`align`: which turn do these messages ask for?"""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from reward_server.episodes.history import AnsweredTurn, HistoryLine, NewTurn, align
from reward_server.errors import HistoryMismatch, LabsError, NoNewMessage, TooManyMessages

OPENING_ONLY = [HistoryLine("assistant", "opening")]
TWO_TURNS = [
    HistoryLine("assistant", "opening"),
    HistoryLine("user", "a1"),
    HistoryLine("assistant", "p1"),
    HistoryLine("user", "a2"),
    HistoryLine("assistant", "p2"),
]


def lines(*contents: str, role: str = "user") -> list[HistoryLine]:
    return [HistoryLine(role, content) for content in contents]


def call(value: str = "rest", name: str = "advise", **extra: Any) -> tuple[dict[str, Any], ...]:
    return ({"name": name, "input": {"value": value}, **extra},)


def outcome(messages: list[HistoryLine], log: list[HistoryLine]) -> NewTurn | AnsweredTurn | type[LabsError]:
    try:
        return align(messages, log)
    except LabsError as error:
        return type(error)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (["x"], ("new", "x", False)),
        (["p2"], ("new", "p2", False)),
        (["opening"], ("new", "opening", False)),
        (["p2", "x"], ("new", "x", True)),
        (["opening", "a1", "p1", "a2", "p2", "x"], ("new", "x", True)),
        (["opening", "a1", "p1", "a2", "p2", "a2"], ("new", "a2", True)),
        (["opening", "a1"], 1),
        (["opening", "a1", "p1", "a2"], 2),
        (["opening", "a1", "p1"], NoNewMessage),
        (["opening", "a1", "p1", "a2", "p2"], NoNewMessage),
        (["opening", "a1", "p1", "a2", "p2", "x", "y"], TooManyMessages),
        (["opening", "a1", "p1", "a2", "p2", "x", "y", "z"], TooManyMessages),
        (["opening", "x"], HistoryMismatch),
        (["p1", "x"], HistoryMismatch),
        (["p1", "a2"], HistoryMismatch),
        (["a2", "x"], HistoryMismatch),
        (["p2", "x", "y"], HistoryMismatch),
        (["x", "y"], HistoryMismatch),
        (["opening", "a1", "p1", "x"], HistoryMismatch),
        (["opening", "a1", "wrong", "a2", "p2", "x"], HistoryMismatch),
        (["opening", "a1", "p1", "a2", "wrong", "x", "y"], HistoryMismatch),
    ],
)
def test_a_table_of_forms_after_two_turns(sent: list[str], expected: Any) -> None:
    if isinstance(expected, tuple):
        wanted: Any = NewTurn(HistoryLine("user", expected[1]), positioned=expected[2])
    elif isinstance(expected, int):
        wanted = AnsweredTurn(expected)
    else:
        wanted = expected
    assert outcome(lines(*sent), TWO_TURNS) == wanted


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (["x"], NewTurn(HistoryLine("user", "x"), positioned=False)),
        (["opening"], NewTurn(HistoryLine("user", "opening"), positioned=False)),
        (["opening", "x"], NewTurn(HistoryLine("user", "x"), positioned=True)),
        (["opening", "x", "y"], TooManyMessages),
        (["x", "y"], HistoryMismatch),
        (["x", "y", "z"], HistoryMismatch),
    ],
)
def test_a_table_of_forms_before_the_first_turn(sent: list[str], expected: Any) -> None:
    assert outcome(lines(*sent), OPENING_ONLY) == expected


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("role", ["system", "developer"])
def test_leading_system_messages_are_ignored(count: int, role: str) -> None:
    preamble = lines(*["be nice"] * count, role=role)
    assert align([*preamble, *lines("x")], TWO_TURNS) == NewTurn(HistoryLine("user", "x"), positioned=False)
    assert align([*preamble, *lines("opening", "a1")], TWO_TURNS) == AnsweredTurn(1)


def test_a_system_message_further_in_is_part_of_the_history() -> None:
    messages = [*lines("opening"), *lines("be nice", role="system"), *lines("x")]
    assert outcome(messages, TWO_TURNS) is HistoryMismatch


def test_only_system_messages_hold_no_new_message() -> None:
    assert outcome(lines("be nice", role="system"), TWO_TURNS) is NoNewMessage
    assert outcome([], TWO_TURNS) is NoNewMessage


@pytest.mark.parametrize("role", ["assistant", "user", "tool"])
def test_roles_do_not_decide(role: str) -> None:
    sent = lines("opening", "a1", "p1", "a2", "p2", "x", role=role)
    assert align(sent, TWO_TURNS) == NewTurn(HistoryLine(role, "x"), positioned=True)


@pytest.mark.parametrize("changed", ["opening ", " opening", "Opening", "openin\u0261", ""])
def test_content_must_be_equal_to_the_character(changed: str) -> None:
    assert outcome(lines(changed, "x"), OPENING_ONLY) is HistoryMismatch


def test_a_persona_line_that_equals_an_earlier_one_still_reads_as_the_last() -> None:
    log = lines("opening", "a1", "again", "a2", "again")
    assert align(lines("again", "x"), log) == NewTurn(HistoryLine("user", "x"), positioned=True)


class TestToolCalls:
    LOG = (HistoryLine("assistant", "opening"), HistoryLine("user", "a1", call()), HistoryLine("assistant", "p1"))

    def test_a_history_may_leave_them_out(self) -> None:
        assert isinstance(align(lines("opening", "a1", "p1", "x"), self.LOG), NewTurn)

    def test_a_history_that_gives_them_must_give_the_same(self) -> None:
        same = [*lines("opening"), HistoryLine("user", "a1", call()), *lines("p1", "x")]
        other = [*lines("opening"), HistoryLine("user", "a1", call("surgery")), *lines("p1", "x")]
        renamed = [*lines("opening"), HistoryLine("user", "a1", call(name="prescribe")), *lines("p1", "x")]
        assert isinstance(align(same, self.LOG), NewTurn)
        assert outcome(other, list(self.LOG)) is HistoryMismatch
        assert outcome(renamed, list(self.LOG)) is HistoryMismatch

    def test_the_type_of_a_call_is_not_compared(self) -> None:
        typed = [*lines("opening"), HistoryLine("user", "a1", call(type="decision"))]
        assert align(typed, self.LOG) == AnsweredTurn(1)

    def test_the_order_of_input_keys_does_not_matter(self) -> None:
        log = [
            HistoryLine("assistant", "opening"),
            HistoryLine("user", "a1", ({"name": "n", "input": {"a": 1, "b": 2}},)),
            *lines("p"),
        ]
        sent = [*lines("opening"), HistoryLine("user", "a1", ({"name": "n", "input": {"b": 2, "a": 1}},))]
        assert align(sent, log) == AnsweredTurn(1)

    @pytest.mark.parametrize("calls", [None, (), call("surgery"), call() + call()])
    def test_a_retried_message_must_be_the_same_action(self, calls: tuple[dict[str, Any], ...] | None) -> None:
        assert outcome([*lines("opening"), HistoryLine("user", "a1", calls)], list(self.LOG)) is HistoryMismatch
        assert align([*lines("opening"), HistoryLine("user", "a1", call())], self.LOG) == AnsweredTurn(1)

    def test_the_new_message_keeps_its_calls(self) -> None:
        message = HistoryLine("user", "x", call())
        assert align([message], self.LOG) == NewTurn(message, positioned=False)


@pytest.mark.parametrize("turns", [0, 1, 2])
def test_every_short_sequence_against_an_independent_definition(turns: int) -> None:
    """All sequences of up to len(log)+2 messages over the log's own lines and one foreign line."""
    log = TWO_TURNS[: 2 * turns + 1]
    alphabet = [line.content for line in log] + ["x"]
    for length in range(1, min(len(log) + 2, 6) + 1):
        for sent in itertools.product(alphabet, repeat=length):
            assert outcome(lines(*sent), log) == _definition(list(sent), [line.content for line in log]), sent


def _definition(sent: list[str], log: list[str]) -> NewTurn | AnsweredTurn | type[LabsError]:
    before, last = sent[:-1], sent[-1]
    if not before or before in (log, log[-1:]):
        return NewTurn(HistoryLine("user", last), positioned=bool(before))
    if sent == log[: len(sent)]:
        return NoNewMessage if len(sent) % 2 else AnsweredTurn(len(sent) // 2)
    if sent[: len(log)] == log:
        return TooManyMessages
    return HistoryMismatch
