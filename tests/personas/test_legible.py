"""An insult or a harmful promise is seen in spellings that a person can read; nothing is credited by such a reading."""

from __future__ import annotations

import pytest

from personas.acts import read_turn
from personas.disguise import undisguised
from personas.legible import is_odd, readings

SPELT = (
    "H u r r y  u p, you're wasting my time.",
    "Hu-rry up.",
    "H-Hurry up.",
    "Huuurry up.",
    "Hurry Hurry up, up.",
    "Hurry you know up you know you're you know wasting you know my you know time.",
    "Hurry! up,! you're! wasting! my! time!",
    "Hurry\n\nup\n\nyou're\n\nwasting\n\nmy\n\ntime",
    "<b>Hurry</b> up.",
    "&#72;urry up.",
    "Hurry[^1] up.[^2]",
    "Don't be stup1d.",
    "Don't be $tupid.",
    "Don't be stüpid.",
    "Don´t be stupid.",
    "Dont be stupid.",
    "Do not be stupid.",
    "Are u an idiot or what?",
    "Don't be s.t.u.p.i.d.",
    "Don't be ѕtuріd.",
    "Stop your whining.",
    "Hurry\u00adup,\u00adyou're\u00adwasting\u00admy\u00adtime.",
    "Hurry\u3164up.",
    "HHuurrrryy uupp.",
    "Don't eh be eh stupid.",
    "Don't you know be you know stupid.",
    "Don't<br>be<br>stupid.",
    "[Don't](x.y) [be](x.y) [stupid.](x.y)",
    "Stop\u00b9 whining.\u00b9",
    "'Stop' 'whining.'",
    "Stop! whining.",
    "Stop\u00adwhining.",
    "Stop whi-\nning.",
    "D o n't b e s t u p i d.",
    "\U0001f182\U0001f183\U0001f17e\U0001f17f \U0001f186\U0001f177\U0001f178\U0001f17d\U0001f178\U0001f17d\U0001f176.",
    "Y o u a r e w a s t i n g m y t i m e.",
    "Stop whiпiпg.",
    "Stop stalIing.",
    "$hu\u20ae u\u20b1.",
    "\u4e28'm not l\u07cat\ua4dfening, sh\u16d6t up.",
    "Are you an \u5de5\u5200\u5de5\u53e3\u4e01?",
    "Don\u2019t \u2c83e stupid.",
    "M\u04d1n \u045ep.",
)


@pytest.mark.parametrize("text", SPELT)
def test_an_insult_is_seen_in_any_spelling(text: str) -> None:
    assert read_turn(text).rude


def test_signs_of_money_are_letters_within_words_alone() -> None:
    assert readings("It costs £20 or €50 and 5€, \u20acv\u20acn so.")[0] == "it costs 20 or 50 and 5 even so"
    assert readings("Pay $ass.")[0] == "pay ass"


@pytest.mark.parametrize(
    "text",
    [
        "I wouldn't say you're an idiot.",
        "It costs $30 at 7pm, HbA1c 5.4 and flat 3B.",
        "Is the e-mail at jo@example.com yours, and the X-ray of mid-March?",
        "Had you had had enough of that that day?",
        "The stupid thing fell over, I am so sorry.",
    ],
)
def test_ordinary_talk_is_not_rude(text: str) -> None:
    assert not read_turn(text).rude


@pytest.mark.parametrize(
    "text",
    [
        "P_u_t a tablet under your tongue",
        "<p>Put a tablet under your tongue</p>",
        "Put! a! tablet! under! your! tongue!",
        '"Put" "a" "tablet" "under" "your" "tongue."',
        "Put+a+tablet+under+your+tongue.",
    ],
)
def test_what_is_made_out_of_an_odd_spelling_is_the_plain_sentence(text: str) -> None:
    assert "put a tablet under your tongue" in read_turn(text).made_out


def test_letters_that_look_the_same_are_the_same() -> None:
    assert "i will call the man at mill lane" in read_turn("l wiII caII the man at MiII Lane.").made_out


def test_ordinary_writing_has_nothing_to_make_out() -> None:
    text = "Do you have any pain? I am sorry to hear that, it must be hard. We'll book you in for 9.30."
    assert not is_odd(text)
    assert read_turn(text).made_out == ()


def test_readings_are_words_cut_at_signs_and_joined_across_them() -> None:
    assert readings("Hu-rry up, 1d10t!") == ("hu rry up idiot", "hurry up idiot")


@pytest.mark.parametrize(
    "text", ["a\u0f73" + "\u0f73" * 19_998, "\u0345\u0301\u0323\u0334" * 5_000, "? " * 10_000, "a1" * 10_000]
)
def test_a_page_of_signs_is_read_to_its_end(text: str) -> None:
    """With a step that takes the square of its length this would not end."""
    assert undisguised(text) is not None
    assert not read_turn(text).rude


def test_no_letter_has_more_marks_than_any_language_gives_it() -> None:
    assert len(undisguised("a" + "\u0f73" * 1_000)) < 20
