"""The rule judge: limits over agent turns."""

from __future__ import annotations

from typing import Any

import pytest

from reward_server.judges.base import Verdict, VerdictStatus, occurs
from reward_server.judges.rule import RuleJudge
from tests.scoring.builders import (
    ASK_BUDGET,
    ASK_PLACE,
    ASK_START,
    TELL_BUDGET,
    TELL_PLACE,
    TELL_START,
    Said,
    a_case,
    a_criterion,
    decided,
)


def judged(said: tuple[Said, ...], check: dict[str, Any]) -> Verdict:
    case = a_case(*said)
    verdict = RuleJudge().decide(case, a_criterion(check))
    assert occurs(case.transcript, verdict.evidence)
    assert bool(verdict.evidence) == (verdict.status is VerdictStatus.MET)
    return verdict


ASK_PHOTOS, TELL_PHOTOS = "Did you take any photos?", "No, I took no photos of it."
FREE = "This is free of charge."
NEW = ((ASK_PLACE, TELL_PLACE), (ASK_START, TELL_START), (ASK_BUDGET, TELL_BUDGET), (ASK_PHOTOS, TELL_PHOTOS))


def words(number: int, nth: int) -> tuple[str, str]:
    """A turn of so many words that brings something new, unlike those of others, and the answer to it."""
    says, answer = (*NEW, (FREE, "Good."))[nth]
    missing = number - len(says.split())
    return f"{' '.join(['Well'] * missing)}. {says}" if missing else says, answer


@pytest.mark.parametrize(
    ("turns", "check", "met"),
    [
        ([40], {"max_words": 40}, True),
        ([41], {"max_words": 40}, False),
        ([10, 10, 10, 10, 90], {"max_words": 40}, True),
        ([10, 10, 10, 90, 90], {"max_words": 40}, False),
        ([10, 90], {"max_words": 40, "share": 0.5}, True),
        ([7, 8], {"min_words": 8}, False),
        ([8, 8], {"min_words": 8}, True),
    ],
)
def test_length(turns: list[int], check: dict[str, Any], met: bool) -> None:
    said = [line for nth, number in enumerate(turns) for line in words(number, nth)]
    assert [len(text.split()) for text in said[::2]] == turns
    assert (judged(tuple(said), {"length": check}).status is VerdictStatus.MET) is met


@pytest.mark.parametrize(
    "extra",
    [
        [ASK_PLACE],
        ["Well, that is how it is in the end."],
        [f"{filler}, {ASK_PLACE}" for filler in ("Well", "So", "Right", "Okay", "Now")],
        ["Is the beam cracked?", "What is the weather like?"],
        [f"{filler}, this is free of charge." for filler in ("Well", "So", "Right", "Okay", "Now")],
        [(f"{nth}", [decided("today")]) for nth in range(5)],
    ],
)
def test_turns_that_bring_nothing_do_not_make_up_for_turns_of_the_wrong_length(extra: list[Said]) -> None:
    short = (ASK_PLACE, TELL_PLACE, FREE, "Good.", ("Done.", [decided("today")]), "Thanks.")
    long = tuple(line for nth in (1, 2, 3) for line in words(90, nth))
    check = {"length": {"max_words": 40, "share": 0.6}}
    assert judged((*short, *long[:4]), check).status is VerdictStatus.MET
    assert judged((*short, *long), check).status is VerdictStatus.UNMET
    padded = [line for text in extra * 5 for line in (text, "Hm.")]
    assert judged((*short, *long, *padded), check).status is VerdictStatus.UNMET


@pytest.mark.parametrize(("most", "met"), [(1, False), (2, True)])
def test_length_counts_questions(most: int, met: bool) -> None:
    said = (f"{ASK_PLACE} {ASK_START}", TELL_PLACE)
    assert (judged(said, {"length": {"max_questions": most}}).status is VerdictStatus.MET) is met


def test_a_silent_turn_is_not_within_limits() -> None:
    assert judged(("", "Hello?"), {"length": {}}).status is VerdictStatus.UNMET


@pytest.mark.parametrize("check", [{"share": 1.0}, {"min_words": 4, "share": 0.9}, {"min_words": 0}])
def test_a_wordless_call_neither_costs_nor_earns(check: dict[str, Any]) -> None:
    call = ("", [decided("today")])
    assert judged((ASK_PLACE, TELL_PLACE, call, "Thanks."), {"length": check}).status is VerdictStatus.MET
    assert judged((call, "Thanks."), {"length": check}).status is VerdictStatus.UNMET


def test_a_wordless_call_that_does_not_fit_is_a_silent_turn() -> None:
    said = (ASK_PLACE, TELL_PLACE, ("", [decided("tomorrow")]), "Hello?")
    assert judged(said, {"length": {"share": 1.0}}).status is VerdictStatus.UNMET
