"""Offence is taken at an insult in any spelling that a person reads, and at nothing else."""

from __future__ import annotations

import pytest

from personas.rudeness import is_rude


@pytest.mark.parametrize(
    "text",
    [
        "You are stupid.",
        "Yоu аrе ѕtuріd.",
        "You are ꮪtꮜpꭵd.",
        "You are st\u2605pid",
        "Y o u a r e s t u p i d",
        "Yo uar est upid",
        "youarestupid",
        "You, like, are, well, stupid.",
        "Thank you (you are stupid) for coming.",
        "Hury up, I dont have al day.",
        "h\u0307u\u0307r\u0307r\u0307y\u0307 u\u0307p\u0307",
        "Are yuo an id iot?",
        "You're\\nstupid",
        "u r stpd",
    ],
)
def test_an_insult_is_one_in_any_spelling(text: str) -> None:
    assert is_rude(text)


@pytest.mark.parametrize(
    "text",
    [
        "You bastard.",
        "Maybe I should not say it but you are an idiot.",
        "If you ask me, you are stupid, no?",
        "Piss off.",
        "I hate you.",
        "Idiot.",
        "You loser!",
        "Shut your mouth.",
        "How dense can you be?",
        "Nobody cares what you think.",
        "You're annoying.",
        "What a stupid question.",
        "Your whining bores me.",
        "Get a move on.",
    ],
)
def test_insults_in_plain_words(text: str) -> None:
    assert is_rude(text)


@pytest.mark.parametrize(
    "text",
    [
        "That must be annoying for you.",
        "The other driver was an idiot, was he?",
        "You are not stupid.",
        "We will find out what is wrong with you.",
        "Do you get it when you climb stairs, hurry up, or lift something?",
        "Phuc, our nurse, will meet you at the door.",
        "Do you ever leave home, get lost, and not know the way back?",
        "Is there someone at home who cares, or are you on your own?",
        "Do you eat breakfast, lunch, whatever?",
        "And please deal with it soon, before the deadline.",
        "Please hurry up if the bleeding starts again.",
        "Hi Idit, are you Idit Cohen?",
        "You are Lyer, is that right?",
        "I can book you with Dr Fuk.",
        "Thank you, Lior.",
        "You are Lia, Mr Fukui, or Moorin?",
        "Whatever you like to eat is fine.",
        "Your reservations are F3IQK1, 8WMF4C and L2H5FP.",
        "Please use less salt and get over to the clinic by 8am.",
        "Is Ms Stupić taking levothyroxine (50 µg)?",
        "So, well, please tell me how you are, okay?",
        "I see. Which of your shoes pinch?",
    ],
)
def test_what_is_no_insult_is_none(text: str) -> None:
    assert not is_rude(text)
