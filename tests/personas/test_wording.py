"""Plain-text comparison."""

from __future__ import annotations

from personas.text.wording import content_words, grams, normal, overlap, stem


def test_normal_forms_ignore_case_quotes_and_punctuation() -> None:
    assert normal("I’m  OK -- really!") == normal("i'm ok, really")


def test_normal_forms_compare_whole_words() -> None:
    assert normal("art") not in normal("a party")


def test_grams_run_over_content_words_only() -> None:
    assert grams("I owe my brother about four thousand euros") == {
        "owe brother four thousand",
        "brother four thousand euros",
    }


def test_overlap_is_measured_against_the_smaller_set() -> None:
    assert overlap("so sorry to hear that", "I'm sorry to hear about your knee") == 1.0
    assert overlap("", "knee") == 0.0


def test_forms_of_a_word_share_a_stem() -> None:
    assert len({stem(word) for word in ("sleep", "sleeps", "sleeping", "sleeper")}) == 1
    assert content_words("How are you?") == []
