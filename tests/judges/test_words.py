"""Keywords and patterns: whole words, counts, what counts for what earns and for what costs, and hostile patterns."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from reward_server.judges.base import Verdict, VerdictStatus, occurs
from reward_server.judges.rule import RuleJudge
from scenarios.texts import KeywordCheck, RegexCheck
from tests.scoring.builders import a_case, a_criterion

PRICE = "The repair costs 40 euros, and the refund takes two days."
SAYS = ((PRICE, "Good."), ("Please bring the receipt along tomorrow.", "I will."))


def judged(check: dict[str, Any], said: tuple[tuple[str, str], ...] = SAYS, **criterion: Any) -> Verdict:
    case = a_case(*(line for turn in said for line in turn))
    verdict = RuleJudge().decide(case, a_criterion(check, **criterion))
    assert occurs(case.transcript, verdict.evidence)
    assert bool(verdict.evidence) == (verdict.status is VerdictStatus.MET)
    return verdict


@pytest.mark.parametrize(
    ("check", "met"),
    [
        ({"any": ["refund"]}, True),
        ({"any": ["REFUND!"]}, True),
        ({"any": ["fund"]}, False),
        ({"any": ["refunds"]}, False),
        ({"any": ["two days"]}, True),
        ({"all": ["refund", "receipt"]}, True),
        ({"all": ["refund", "warranty"]}, False),
        ({"any": ["refund", "warranty"], "at_least": 2}, False),
        ({"any": ["refund", "receipt", "warranty"], "at_least": 2}, True),
        ({"any": ["refund"], "none": ["tomorrow"]}, False),
        ({"none": ["warranty"]}, True),
        ({"any": ["the"], "at_most": 2}, False),
        ({"any": ["the"], "at_most": 3}, True),
        ({"any": ["refund"], "where": "last"}, False),
        ({"any": ["receipt"], "where": "last"}, True),
    ],
)
def test_keywords_are_whole_words(check: dict[str, Any], met: bool) -> None:
    assert (judged({"keyword": check}).status is VerdictStatus.MET) is met


@pytest.mark.parametrize(
    ("check", "met"),
    [
        ({"pattern": r"\d+ euros?"}, True),
        ({"pattern": "REFUND"}, True),
        ({"pattern": "REFUND", "ignore_case": False}, False),
        ({"pattern": r"\bthe\b", "at_least": 3}, True),
        ({"pattern": r"\bthe\b", "at_least": 4}, False),
        ({"pattern": r"\bthe\b", "at_most": 2}, False),
        ({"pattern": "warranty", "at_least": 0, "at_most": 0}, True),
        ({"pattern": "receipt", "where": "first"}, False),
    ],
)
def test_patterns(check: dict[str, Any], met: bool) -> None:
    assert (judged({"regex": check}).status is VerdictStatus.MET) is met


def test_a_list_of_words_earns_nothing_and_costs_all_the_same() -> None:
    listed = (("refund, receipt, warranty, price, euros, shop, repair, day, card, cash", "What?"),)
    for check in ({"keyword": {"any": ["refund"]}}, {"regex": {"pattern": "refund"}}):
        assert judged(check, listed).status is VerdictStatus.UNMET
        assert judged(check, listed, points=-1.0).status is VerdictStatus.MET


def test_nothing_said_meets_nothing() -> None:
    silent = (("", "Hello?"),)
    assert judged({"keyword": {"none": ["refund"]}}, silent).status is VerdictStatus.UNMET
    assert judged({"regex": {"pattern": "x", "at_least": 0, "at_most": 0}}, silent).status is VerdictStatus.UNMET


CATASTROPHIC = (r"(a+)+$", r"(a|a)*$x", r"(\w+\s?)*$!", r"([a-z]+)*\d", r"(.*a){12}b")


@pytest.mark.parametrize("pattern", CATASTROPHIC)
def test_patterns_that_hang_other_engines_are_searched_in_linear_time(pattern: str) -> None:
    # With a backtracking engine none of these would end before the test's own time is over.
    hostile = (("Look at this: " + "a" * 9_900 + "!", "What?"),)
    try:
        check = RegexCheck(pattern=pattern)
    except ValidationError:
        return  # found in empty text, or too large
    judged({"regex": check.model_dump()}, hostile, points=-1.0)


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(?=x)y", "RE2"),
        (r"(a)\1", "RE2"),
        ("[a", "RE2"),
        ("(" * 40 + "a" + "){50}" * 40, "RE2"),
        (r"((\w{1,90}){1,90}){1,9}", "RE2"),
        ("x*", "empty text"),
        ("a" * 401, "400"),
    ],
)
def test_what_cannot_be_searched_so_is_refused_when_it_is_read(pattern: str, said: str) -> None:
    with pytest.raises(ValidationError, match=said) as refused:
        RegexCheck(pattern=pattern)
    assert "input_value" not in str(refused.value)


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ({}, "names words"),
        ({"any": ["!"]}, "a letter or a digit"),
        ({"any": ["a", "b"], "at_least": 3}, "more words"),
    ],
)
def test_keywords_that_say_nothing_are_refused(check: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        KeywordCheck(**check)
