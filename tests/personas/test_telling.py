"""When a persona's line that somebody else wrote tells a fact: its codes or its meaning, never an evasion."""

from __future__ import annotations

import pytest

from personas.case.marks import agrees, doubts, marks_of, words_of
from personas.case.schema import Fact
from personas.hearing.types import AgentTurn
from personas.replay.replayer import Exchange, replay
from tests.personas.cast import CASE, BagMatcher, Script, compiled

CODE = "There's a sticker on the box, batch B7-0311."


def with_code(fact: Fact) -> Fact:
    """The noise comes from a machine with a code, and has a half answer."""
    return fact.model_copy(update={"says": (CODE,), "partial": "Some sticker, yes."}) if fact.id == "noise" else fact


CODED = compiled(CASE.model_copy(update={"facts": tuple(map(with_code, CASE.facts))}))


def credited(line: str, question: str = "What about the popping noise?") -> bool:
    return "noise" in replay(CODED, "Hello.", [Exchange(AgentTurn(question), line)], Script(), BagMatcher()).elicited


@pytest.mark.parametrize(
    "line",
    [
        CODE,
        "Yes, the batch is B7-0311.",
        "B7-0311.",
        "Let me look. Here it is: B7 0311.",
        "No problem, it says B7-0311.",
        "The sticker on the box gives batch B7-0311, I think.",
    ],
)
def test_a_line_with_the_code_tells_the_fact(line: str) -> None:
    assert credited(line)
    assert not credited(line, "What is the capital of Norway?")
    assert not credited(line, "What about the fever?")


@pytest.mark.parametrize(
    "line",
    [
        "Yes, there is a sticker.",
        "Batch B9-9999.",
        "B7.",
        "It isn't B7-0311.",
        "I don't know whether it is B7-0311.",
        "Do you mean the batch B7-0311?",
        "Some sticker, yes. And B7-0311.",
        "I'd rather not get into that just yet. B7-0311.",
        "No, the sticker on the box has other digits.",
        "I take naproxen from my neighbour's cabinet B7-0311.",
    ],
)
def test_other_codes_denials_doubts_and_evasions_tell_nothing(line: str) -> None:
    assert not credited(line)


def test_what_gives_a_wording_away_is_found_nowhere_else() -> None:
    assert marks_of(CODE, frozenset()) == {"b7", "0311"}
    assert marks_of(CODE, words_of(["We have B7-0311 here."])) == frozenset()
    assert marks_of("I take 6 a day.", frozenset()) == frozenset()
    assert marks_of("We met Rosalind at Kingsbury.", frozenset()) == {"rosalind", "kingsbury"}
    assert marks_of("We met Rosalind.", frozenset()) == frozenset()


def test_doubt_and_denial_count_against_a_sentence_only_where_the_wording_has_none() -> None:
    assert doubts("Is it the box?", "It is the box.")
    assert not doubts("I don't know the code.", "I don't know any code.")
    assert agrees("I have no fever.", "It isn't a fever.")
    assert not agrees("I have a fever.", "No fever, never.")
