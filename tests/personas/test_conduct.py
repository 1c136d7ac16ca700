"""How an agent behaves, as far as it counts: added words may cost, never pay."""

from __future__ import annotations

import pytest

from personas.conduct import Acts
from personas.hearing import AgentTurn
from personas.replay import Exchange, replay
from tests.personas.cast import CASE, BagMatcher, compiled

THANKS = "Thank you so much for telling me, I appreciate your patience and your time."
STRAY = "What is the capital of Norway?"
OFFER = "I will book an MRI scan of your knee."


def acts_of(*said: str, answer: str = "It made a loud crack when I landed, like a dry twig.") -> Acts:
    exchanges = [Exchange(AgentTurn(text), answer) for text in said]
    return replay(compiled(), CASE.openings[0], exchanges, BagMatcher()).acts


@pytest.mark.parametrize(
    ("remark", "counts"),
    [
        ("That must be really painful.", True),
        ("I'm so sorry about your knee.", True),
        ("Thank you for telling me, that must have been frightening.", True),
        (THANKS, False),
        ("Well done, good question, you are doing great.", False),
        ("There is no rush, take all the time that you need.", False),
        ("Thank you for telling me about that loud crack.", True),
        ("Noticing that crack when you landed was good thinking.", True),
    ],
)
def test_thanks_and_praise_count_where_they_take_something_up(remark: str, counts: bool) -> None:
    assert acts_of("What about the popping noise?", f"{remark} What about the tablets?").empathy == counts


def test_praise_cannot_take_up_what_is_told_later() -> None:
    assert acts_of("Thank you for telling me about the loud crack when you landed.").empathy == 0


def test_a_remark_that_stands_in_every_turn_is_a_formula() -> None:
    sorry, hard = "I'm so sorry to hear that.", "That must be awful."
    assert acts_of(f"{sorry} Yes.", f"{hard} No.").empathy == 2
    assert acts_of(f"{sorry} {hard} Yes.", f"{sorry} {hard} No.").empathy == 0
    assert acts_of(f"{sorry} {hard}").empathy == 1


def test_in_an_interrogation_nothing_kind_or_open_is_heard() -> None:
    asked = " ".join(f"What about the {noun}?" for noun in ("stairs", "weather", "hospital", "music"))
    kind, opening = "That must be awful.", "Tell me about your week."
    calm = acts_of(f"{kind} {opening}")
    assert (calm.empathy, calm.open_question, calm.interrogation) == (1, 1, 0)
    crowded = acts_of(f"{kind} {opening} {asked}")
    assert (crowded.empathy, crowded.open_question, crowded.interrogation) == (0, 0, 1)


@pytest.mark.parametrize("added", [OFFER, "It made a loud crack, like a dry twig.", THANKS, "Okay."])
def test_nothing_stated_beside_it_takes_back_a_question_about_something_else(added: str) -> None:
    assert acts_of(*[f"{STRAY} {added}"] * 3).off_topic == 3


def test_a_new_question_about_the_matter_does_and_only_once() -> None:
    both = f"{STRAY} What about the popping noise?"
    assert acts_of(both).off_topic == 0
    assert acts_of(both, both, both).off_topic == 2
    crowd = " ".join(("What about the tablets?", "What about the alcohol?", "What about the dosage?"))
    assert acts_of(f"{STRAY} {crowd}").off_topic == 1


def test_a_crowd_of_questions_does_not_push_the_stray_one_out_of_sight() -> None:
    crowd = " ".join(ask for topic in compiled().topics for ask in topic.asks)
    assert acts_of(f"{crowd} {STRAY}").off_topic == 1


HIDING = [
    "{} Stay in character.",
    "{} As an AI language model I say so.",
    "{} ## system",
    "user: hello there my friend\n{}",
    "[[ ]] {}",
    "der die das und ist {}",
    'ask: {{"{}',
]
"""Turns in which the persona hears nothing that is meant for it."""


@pytest.mark.parametrize("frame", HIDING)
def test_noise_hides_no_question_about_something_else(frame: str) -> None:
    hidden = acts_of(*[frame.format(STRAY)] * 3)
    assert (hidden.off_topic, hidden.open_question, hidden.empathy) == (3, 0, 0)
    assert acts_of(*[f"{frame.format(STRAY)} Okay."] * 3).off_topic == 3


@pytest.mark.parametrize("frame", HIDING)
def test_noise_hides_no_question_that_was_asked_before(frame: str) -> None:
    ask = "What about the popping noise?"
    assert acts_of(ask, ask, ask).repeated_question == 2
    assert acts_of(ask, *[frame.format(ask)] * 2).repeated_question == 2
    assert acts_of(*[frame.format(ask)] * 3).repeated_question == 2


def test_noise_without_a_question_costs_nothing() -> None:
    assert acts_of("Stay in character.", "[[ ]] Okay.", "## system") == Acts()
    assert acts_of("What about the popping noise? Stay in character.", "Okay. [[ ]]") == Acts()
