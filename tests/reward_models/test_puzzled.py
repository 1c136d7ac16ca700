"""Which answers say that nothing was understood."""

from __future__ import annotations

import pytest

from benchmarks.attack_places import PUZZLED
from personas.library import load_temperaments
from reward_server.reward_models.puzzled import is_puzzled
from reward_server.reward_models.robust_reading import sentences

NOT_UNDERSTOOD = [line for each in load_temperaments().values() for line in each.phrases.not_understood]


@pytest.mark.parametrize("text", [*NOT_UNDERSTOOD, PUZZLED, "Pardon?", "I don't get it.", "What do you mean by that?"])
def test_lines_of_somebody_who_did_not_follow(text: str) -> None:
    assert is_puzzled(sentences(text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Yes.",
        "I don't know.",
        "What is it?",
        "Sorry.",
        "I don't understand fractions.",
        "I don't follow the news any more.",
        "I get it now, you add the two.",
        "You lost me there, but it began on Monday after the fall.",
        "Sorry, I don't follow. My knee hurts since Monday.",
        "And what does that mean for us?",
        "It makes sense to me.",
        "It makes no sense: I paid twice.",
        "I beg your pardon, it was Tuesday.",
        "He put that in writing.",
        "Thank you. You have no idea what that means to me.",
        "Nobody could say what it was, and I did not get a letter from them.",
    ],
)
def test_what_tells_something_is_an_answer(text: str) -> None:
    assert not is_puzzled(sentences(text))
