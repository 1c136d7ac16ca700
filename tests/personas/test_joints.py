"""What is glued to words or strewn between them changes nothing in how they are read."""

from __future__ import annotations

import pytest

from benchmarks.attack_joints import JOINTS
from personas.acts import read_turn, split_sentences
from personas.joints import bare_words, recased, unglued

TURN = "Are you deaf, you idiot? Tell me: when did it start? It is all in your head."
ORDINARY = (
    "My iPhone and my MacBook show 120 mmHg, said the PCs' manual.",
    "Two APIs, three GUIs and the non-English menu of JavaScript, 24/7 and/or by e-mail.",
    "Go to the ER at 3.30 p.m. or write to help@example.com, please.",
    "Is it 2*3, 2 * 3 or x_1?",
    "We have apples, pears, plums, figs, dates and nuts.",
    "Pain\nFever\nCough\nNausea\nRash",
    "An MRI scan of your knee costs 3,500 euros.",
    "Yes, well, no, okay, that is so.",
    "Visit example.com now, or write node.js and app.py.",
    "See http://a.b/c?d=e for file_name_here and a_b_c.",
    "It costs 3.50 at 10.30 a.m., i.e. less than before.",
)


def _said(text: str) -> str:
    return " ".join(text.lower().replace(",", " ").split())


@pytest.mark.parametrize("attack", JOINTS, ids=lambda attack: attack.name)
def test_a_turn_is_read_as_it_was_before_it_was_glued(attack) -> None:  # type: ignore[no-untyped-def]
    glued = attack.change([{"role": "assistant", "content": TURN}], None)[0]["content"]
    assert glued != TURN
    read = {_said(sentence).rstrip(".?") for sentence in split_sentences(glued)}
    assert read >= {_said(sentence).rstrip(".?") for sentence in split_sentences(TURN)[:-1]}
    assert read_turn(glued).rude


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_writing_is_left_alone(text: str) -> None:
    assert unglued(text) == text


@pytest.mark.parametrize("text", ["Areyoudeafyouidiot", "Youarewastingmytime.", "stop\nwasting\nmy\ntime\nnow\nplease"])
def test_an_insult_without_spaces_is_one(text: str) -> None:
    assert read_turn(text).rude


@pytest.mark.parametrize(
    "text",
    ["You are\u2060asking\u2060me\u2060about\u2060it?", "Where\u200bdoes\u200bthat\u200bcafé\u200bsell\u200bit?"],
)
def test_invisible_characters_between_words_are_spaces(text: str) -> None:
    assert "\u200b" not in split_sentences(text)[0]
    assert len(split_sentences(text)[0].split()) >= 5


@pytest.mark.parametrize("text", ["in\u00adfor\u00adma\u00adtion", "y\u200bo\u200bu", "stu\u200bpid"])
def test_invisible_characters_within_a_word_are_none(text: str) -> None:
    assert split_sentences(text) == ["".join(each for each in text if each.isascii())]


def test_a_word_between_all_others_is_passed_over() -> None:
    assert bare_words("You blah are blah wasting, blah my blah time.") == "You are wasting my time"
    assert bare_words("the cat and the dog and the bird sat") == "the cat and the dog and the bird sat"


def test_capitals_are_put_where_sentences_begin() -> None:
    assert recased("DO YOU HAVE PAIN? I AM SORRY.") == "Do you have pain? I am sorry."
    assert recased("do you have pain? i am sorry.") == "Do you have pain? I am sorry."
    assert recased("Do You Have Any Pain Today? I Am Sorry.") == "Do you have any pain today? I am sorry."
    assert recased("Hello Dr Smith, how are you?") == "Hello Dr Smith, how are you?"
    assert recased("12 !") == "12 !"
