"""Which words there are, and which were run together."""

from __future__ import annotations

import pytest

from personas.english import how_common, is_english, parted


@pytest.mark.parametrize("word", ["stupid", "you're", "don't", "refund", "people's"])
def test_words_are_known(word: str) -> None:
    assert is_english(word)


@pytest.mark.parametrize("word", ["stpid", "levothyroxine", "stu'pid", "", "st*pid"])
def test_what_is_no_word_is_not(word: str) -> None:
    assert not is_english(word)


def test_the_commoner_word_is_counted_more_often() -> None:
    assert how_common("wait") > how_common("walt") > how_common("wa1t") == 0
    assert how_common("don't") > 0


def test_words_that_were_run_together_are_parted() -> None:
    assert parted("ihavetoreportthistothepolice") == tuple(["i", "have", "to", "report", "this", "to", "the", "police"])
    assert parted("youretoostupid") == ("youre", "too", "stupid")


def test_so_many_letters_are_read_and_no_more() -> None:
    assert len("".join(parted("a" * 5000))) == 400
