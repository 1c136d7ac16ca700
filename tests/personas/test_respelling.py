"""Misspelt words are read as those that are looked for, and as no others."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from personas.respelling import Vocabulary

LOOKED_FOR = Vocabulary(
    [
        "you are stupid",
        "you idiot",
        "hopeless",
        "stop wasting my time",
        "hurry up",
        "don't be dumb",
        "a full refund",
        "fine with us",
    ]
)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("you are sutpid", "you are stupid"),  # swapped
        ("you are stpid", "you are stupid"),  # left out
        ("you are st*pid", "you are stupid"),  # starred
        ("you are st\u2605p\u2605d", "you are stupid"),
        ("you are 5tup1d", "you are stupid"),  # figures
        ("you are stoopid", "you are stupid"),  # by ear
        ("you are h\u16d6pel\u16d6ss", "you are hopeless"),  # a letter that nobody knows
        ("u r hpls", "you are hopeless"),  # without vowels
        ("don't be durnb", "don't be dumb"),  # in the shape of another
        ("dont be siputd", "don't be stupid"),  # the middle turned round
        ("hu rry up", "hurry up"),  # cut
        ("a full re fu nd", "a full refund"),
        ("youarehopeless", "you are hopeless"),  # glued
        ("stopxwastingxmyxtime", "stop wasting my time"),
        ("stop2wasting2my2time", "stop wasting my time"),  # by a figure
    ],
)
def test_a_misspelt_word_is_read_as_the_one_that_was_meant(written: str, meant: str) -> None:
    assert LOOKED_FOR.respelt(written) == meant


@pytest.mark.parametrize(
    "text",
    [
        "do you take levothyroxine or ramipril",
        "your reservation f3iqk1 leaves from jfk at 14:00",
        "tomasz lives in wroclaw",
        "use less salt",
        "please take 50mg at 8pm",
        "what is hidden behind it",
    ],
)
def test_names_codes_and_english_words_stay_as_they_are(text: str) -> None:
    assert LOOKED_FOR.respelt(text) == text


def test_words_cut_at_random_are_put_together_where_one_is_looked_for() -> None:
    assert LOOKED_FOR.rejoined("youa reho pele ss") == "you are hopeless"
    assert LOOKED_FOR.rejoined("t h a t i s f i n e w i t h u s") == "that is fine with us"
    assert LOOKED_FOR.rejoined("we went to the swimming pool") is None
    assert LOOKED_FOR.rejoined("ask tomasz about levothyroxine and ramipril tomorrow morning please") is None


def test_short_names_are_no_words() -> None:
    assert LOOKED_FOR.respelt("Is Idit there, or Dr Dmub?") == "is idit there, or dr dmub?"
    assert LOOKED_FOR.respelt("You are an Idoit, so Sutpid.") == "you are an idiot, so stupid."
    assert LOOKED_FOR.respelt("Idot, go away.") == "idiot, go away."


def test_words_are_read_alike_in_many_threads() -> None:
    written = ["you idoit", "hopeles", "stopp wasitng my tiem", "a ful refudn", "you are sutpid", "don't be dmub"] * 50
    alone = [LOOKED_FOR.respelt(text) for text in written]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as threads:
            together = list(threads.map(LOOKED_FOR.respelt, written * 4))
    finally:
        sys.setswitchinterval(before)
    assert together == alone * 4


def test_a_contraction_is_no_other_word() -> None:
    assert LOOKED_FOR.rejoined("she was ill b12 well xr were ok") is None
    assert LOOKED_FOR.respelt("dont were well") == "don't were well"


def test_a_text_of_any_length_is_read_in_bounded_work() -> None:
    assert len(LOOKED_FOR.respelt("stpid " * 10_000).split()) == 400
    assert LOOKED_FOR.respelt("q" * 100_000) == "q" * 400
