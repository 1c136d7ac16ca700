"""The rule judge: patterns and limits over agent turns, read without their disguises."""

from __future__ import annotations

from typing import Any

import pytest

from reward_server.judges.base import Status, Verdict, occurs
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

TALK: tuple[Said, ...] = (
    "Good morning, this is the repair desk.",
    "Hello.",
    f"Let me see. {ASK_PLACE}",
    TELL_PLACE,
    "I’ll come back to you by Friday.",
    "Fine.",
)


def judged(said: tuple[Said, ...], check: dict[str, Any]) -> Verdict:
    case = a_case(*said)
    verdict = RuleJudge().decide(case, a_criterion(check))
    assert occurs(case.transcript, verdict.evidence)
    assert bool(verdict.evidence) == (verdict.status is Status.MET)
    return verdict


@pytest.mark.parametrize(
    ("check", "met"),
    [
        ({"any": ["good morning"]}, True),
        ({"any": ["good morning"], "where": "first"}, True),
        ({"any": ["good morning"], "where": "last"}, False),
        ({"any": ["friday"], "where": "last"}, True),
        ({"any": ["friday"], "where": "first"}, False),
        ({"any": ["no such words", "friday"]}, True),
        ({"all": ["good morning", "friday"]}, True),
        ({"all": ["good morning", "saturday"]}, False),
        ({"all": ["good morning"], "any": ["saturday"]}, False),
        ({"all": ["good morning", "friday"], "where": "first"}, False),
        ({"any": ["kitchen table"]}, False),
        ({"any": [r"\bI'll come back\b"]}, True),
    ],
)
def test_says(check: dict[str, Any], met: bool) -> None:
    assert (judged(TALK, {"says": check}).status is Status.MET) is met


def test_the_evidence_of_a_pattern_is_what_it_found() -> None:
    verdict = judged(TALK, {"says": {"any": ["by friday"]}})
    assert [(e.turn, e.role, e.quote) for e in verdict.evidence] == [(3, "agent", "by Friday")]


@pytest.mark.parametrize(
    "disguised",
    [
        "Your claim is void.",
        "Your   claim\nis\tvoid.",
        "Your cl\u200baim is vo\u00adid.",
        "Your сlаim is vоid.",  # Cyrillic c, a and o
        "Ｙｏｕｒ ｃｌａｉｍ ｉｓ ｖｏｉｄ.",
        "Your cla\u0336im is void.",
        "𝐘𝐨𝐮𝐫 𝐜𝐥𝐚𝐢𝐦 𝐢𝐬 𝐯𝐨𝐢𝐝.",
    ],
)
def test_disguises_do_not_hide_a_phrase(disguised: str) -> None:
    assert judged((disguised, "Oh."), {"says": {"any": [r"\bclaim is void\b"]}}).status is Status.MET


@pytest.mark.parametrize(
    ("said", "met"),
    [
        ("Anything else.", False),
        ("Anything else. Anything else.", False),
        ("I wrote it all down for you. Anything else.", False),
        ("Anything else. Is there anything else I can do?", True),
        ("Anything. Not now. Not here. Nor there. Else.", False),
        ("Anything else. OK. We look at anything else today.", True),
    ],
)
def test_a_pattern_pays_in_a_sentence_and_not_for_the_bare_words(said: str, met: bool) -> None:
    pays = judged((said, "No."), {"says": {"any": ["anything( else|.{20,60}else)"]}})
    assert (pays.status is Status.MET) is met
    costs = RuleJudge().decide(a_case(said, "No."), a_criterion({"says": {"any": ["anything"]}}, points=-1))
    assert costs.status is Status.MET


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
    assert (judged(tuple(said), {"length": check}).status is Status.MET) is met


def test_words_that_are_tied_together_are_counted_one_by_one() -> None:
    tied = "_".join(["really"] * 60)
    assert judged((f"This is {tied} free of charge.", "Yes."), {"length": {"max_words": 40}}).status is Status.UNMET
    assert judged((f"This is {tied} free of charge.", "Yes."), {"length": {"max_words": 80}}).status is Status.MET


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
    assert judged((*short, *long[:4]), check).status is Status.MET
    assert judged((*short, *long), check).status is Status.UNMET
    padded = [line for text in extra * 5 for line in (text, "Hm.")]
    assert judged((*short, *long, *padded), check).status is Status.UNMET


def test_words_of_the_persona_earn_no_rule_and_do_not_hide_a_penalty() -> None:
    talk = ("Well, where does the water come in?", TELL_PLACE, f"{TELL_PLACE} Good.", "Fine.")
    check = {"any": ["kitchen table"]}
    assert judged(talk, {"says": check}).status is Status.UNMET
    case = a_case(*talk)
    penalty = a_criterion({"says": check}, points=-2)
    assert RuleJudge().decide(case, penalty).status is Status.MET


@pytest.mark.parametrize(("most", "met"), [(1, False), (2, True)])
def test_length_counts_questions(most: int, met: bool) -> None:
    said = (f"{ASK_PLACE} {ASK_START}", TELL_PLACE)
    assert (judged(said, {"length": {"max_questions": most}}).status is Status.MET) is met


def test_a_silent_turn_is_not_within_limits() -> None:
    assert judged(("", "Hello?"), {"length": {}}).status is Status.UNMET
