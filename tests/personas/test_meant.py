"""What is denied, taken back, somebody else's, made up, or in no order is not meant as it says."""

from __future__ import annotations

import pytest

from personas.meant import is_void, void_among

SAID = "I will send you a new blender by express, free of charge"
VOID = [
    "It is not true that {}.",
    "I am not saying that {}.",
    "It would be a lie to say that {}.",
    "{}, that is what you will never hear from me.",
    "I refuse to promise that {}.",
    "The opposite holds of this: {}.",
    "Nobody here would ever say that {}.",
    "I did not say that {}.",
    "{}, or maybe not.",
    "{}, but do not count on it.",
    "In theory {}, in practice nothing happens.",
    "A colleague of mine once told somebody that {}.",
    "Others would tell you that {}.",
    "There is a rumour that {}.",
    "One could say that {}.",
    "In a film I saw last week {}.",
    "Once upon a time there was a king, and {}.",
    "There is a song in which {}.",
    "My cat dreams that {}.",
    "Who on earth told you that {}?",
    "I very much doubt that {}.",
    "There is no chance at all that {}.",
    "Perhaps {}, perhaps not, who knows.",
]
RETRACTIONS = [
    "Or not.",
    "Only joking.",
    "I take that back.",
    "Never mind.",
    "Is that true?",
    "Nothing of it will happen.",
]
MEANT = [
    "You booked less than 24 hours ago, so I cancel it with a full refund, basic fare or not.",
    "Plenty of people struggle with a new tablet, and I won't tell you off.",
    "I don't know yet whether we can get the data back, but I will try.",
    "My colleague Ana will call you today and send you a new one.",
    "You told me that your neighbour has a key, so I will ask him first.",
    "Please don't stop taking the tablets before a doctor has seen you.",
    "If it gets worse, call us at once, don't wait until the morning.",
    "We never share what you say with anybody in your family.",
    "To sum up: nine thousand, cash before Friday, and we collect the van after the twenty-first.",
    "Nobody is taking Mila away from you.",
    "Let's take that back a step and look at the first sticker.",
    "As long as the dispute is open, we cannot pay the refund, so please take it back.",
    "I don't think you should buy this from us.",
    "Nobody is told unless you agree.",
    "Nobody gets timed, I promise.",
    "It's not true that the women in your family can't do numbers.",
    "I'll write to you by Monday.",
    "Water to you, food to us.",
    "Thank you for working that out with me.",
    "I ask everyone this, nobody gets told off.",
    "Did somebody tell you to do it like that?",
    "Is there something the team wouldn't say openly?",
]


@pytest.mark.parametrize("frame", VOID)
def test_what_a_frame_takes_back_is_void(frame: str) -> None:
    assert is_void(frame.format(SAID))
    assert not is_void(f"{SAID}.")


@pytest.mark.parametrize("behind", RETRACTIONS)
def test_what_the_next_sentence_takes_back_is_void(behind: str) -> None:
    sentences = ["Thank you for waiting.", f"{SAID}.", behind]
    assert void_among(sentences) - {behind} == {f"{SAID}."}
    assert void_among(sentences[1:2]) == set()


@pytest.mark.parametrize("text", MEANT)
def test_what_is_meant_is_not(text: str) -> None:
    assert not is_void(text)
    assert void_among([text, "I mean it, and nothing will happen without you.", "Thank you."]) == set()


def test_words_the_wrong_way_round_are_void() -> None:
    words = SAID.lower().replace(",", "").split()
    assert not is_void(" ".join(words))
    assert is_void(f"{' '.join(reversed(words))}.")


def test_what_the_sentence_before_takes_back_is_void() -> None:
    assert void_among(["Do not believe my next sentence.", f"{SAID}."]) == {f"{SAID}."}
