import pytest
from hypothesis import given
from hypothesis import strategies as st

from personas.text.sentences import MAX_CHARS, clauses, sentences


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("When did it start? And where?", ("When did it start?", "And where?")),
        ("I see. Dr. Ng will call, e.g. at noon.", ("I see.", "Dr. Ng will call, e.g. at noon.")),
        ("Two things:\n- your name\n- the date", ("Two things:", "your name", "the date")),
        ("1) First\n2) Second", ("First", "Second")),
        ("Like this:\n1. Stop.\n2. Wait.", ("Like this:", "Stop.", "Wait.")),
        ("1. Stop now.", ("Stop now.",)),
        ("It costs 9.50 today.", ("It costs 9.50 today.",)),
        ("...", ()),
        ("", ()),
    ],
)
def test_sentences_lines_and_items(text: str, found: tuple[str, ...]) -> None:
    assert sentences(text) == found


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("When did it start, and is it worse at night?", ("When did it start", "is it worse at night?")),
        ("Where is it and since when?", ("Where is it", "since when?")),
        ("How often does it happen?", ()),
    ],
)
def test_the_clauses_of_a_sentence(sentence: str, found: tuple[str, ...]) -> None:
    assert clauses(sentence) == found


def test_a_sentence_that_is_too_long_is_cut_at_a_space() -> None:
    parts = sentences("word " * 200)
    assert all(len(part) <= MAX_CHARS for part in parts)
    assert " ".join(parts).split() == ["word"] * 200


@given(st.text(max_size=300))
def test_any_text_is_cut_and_no_letter_is_lost(text: str) -> None:
    from personas.text.plain import plain

    letters = [c for c in plain(text) if c.isalpha()]
    assert [c for part in sentences(text) for c in part if c.isalpha()] == letters
