"""What the lint of a case finds, one defect at a time."""

from __future__ import annotations

from typing import Any

import pytest

from personas.case.lint import Problem, lint_case
from personas.case.schema import PersonaCase
from tests.personas.cast import CASE, TOPICS

KNEE, NOISE, DOSE, DRINKING, DEBT, LIGAMENT = 0, 2, 4, 5, 6, 8


def problems(change: Any = None) -> list[Problem]:
    data = CASE.model_dump(mode="json")
    if change:
        change(data)
    return lint_case(PersonaCase.model_validate(data), TOPICS, ["referral"])


def test_the_case_of_these_tests_is_clean() -> None:
    assert problems() == []


def _set(*path: Any) -> Any:
    *places, last, value = path

    def change(data: Any) -> None:
        for place in places:
            data = data[place]
        data[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "path", "message"),
    [
        (_set("denials", 0, "id", "scan"), "denials[0].id", "used twice"),
        (_set("facts", 7, "topic", "dreams"), "facts[7].topic", "no topic dreams"),
        (_set("facts", NOISE, "asks", ["Was there a noise?"]), "facts[2].asks", "at least 3"),
        (_set("facts", DOSE, "asks", 0, "What about the tablets?"), "facts[4].asks", "shares an example"),
        (_set("facts", KNEE, "gate", {"after_turn": 2}), "facts[0].gate", "has no gate"),
        (_set("facts", NOISE, "gate", {"rapport": 1}), "facts[2].gate.rapport", "only facts of tier rapport"),
        (_set("facts", DRINKING, "gate", {"rapport": 0}), "facts[5].gate.rapport", "above 0"),
        (_set("facts", DEBT, "gate", "rapport", 2.5), "facts[6].gate.rapport", "guarded would need 3.5"),
        (_set("facts", DOSE, "gate", {"requires": ["ligament"]}), "facts[4].gate.requires", "nothing the persona can"),
        (_set("facts", DRINKING, "gate", "requires", ["debt"]), "facts[5].gate.requires", "never open"),
        (_set("facts", NOISE, "says", ["A bang."]), "facts[2].says", "two wordings"),
        (_set("facts", NOISE, "says", 1, "Honestly, I lie awake until three."), "facts[7].says", "contained in"),
        (_set("nudges", 0, "I lie awake until three."), "nudges[0]", "contains a wording of facts[7]"),
        (_set("unknown", 0, "I owe my brother some four thousand dollars and euros."), "unknown[0]", "four content"),
        (_set("facts", DOSE, "partial", "Maybe six or seven of them a day."), "facts[4].partial", "most of what"),
        (_set("facts", NOISE, "partial", "Hard to say."), "facts[2].partial", "without a gate"),
        (_set("facts", NOISE, "answer", "Who knows."), "facts[2].answer", "only facts of tier unknown"),
        (_set("facts", LIGAMENT, "asks", []), "facts[8].asks", "nobody can ask"),
        (_set("openings", 1, CASE.openings[0].upper()), "openings[1]", "same as an earlier"),
        (_set("commitments", 0, "reply_early", []), "commitments[0].reply_early", "too early"),
        (_set("commitments", 0, "after", ["ligament"]), "commitments[0].after", "nothing the persona can"),
        (_set("ending", "goals", [["surgery"]]), "ending.goals[0]", "neither a commitment"),
        (_set("ending", "goals", [[]]), "ending.goals[0]", "never be met"),
        (_set("temperaments", ["grumpy"]), "temperaments[0]", "no temperament grumpy"),
    ],
)
def test_a_defect_is_found_where_it_is(change: Any, path: str, message: str) -> None:
    assert any(found.path == path and message in found.message for found in problems(change))


def test_an_opening_may_leave_only_a_little_to_the_first_reply() -> None:
    def change(data: Any) -> None:
        data["openings"][1] = "Good morning to you."
        for i in (NOISE, 3):
            data["facts"][i]["tier"] = "volunteered"

    assert any(p.path == "openings[1]" and "4 volunteered" in p.message for p in problems(change))


def test_messages_quote_no_line_of_the_case() -> None:
    found = problems(_set("nudges", 0, "I lie awake until three."))
    assert found
    assert not any("awake" in f"{problem.path}{problem.message}" for problem in found)
