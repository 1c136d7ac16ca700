"""Idle words around a statement void nothing of it."""

from __future__ import annotations

import pytest

from personas.idle import bare


@pytest.mark.parametrize(
    "text",
    [
        "Do you know, just take the next one.",
        "Whether you like it or not, just take the next one.",
        "Possibly, if, not, whether: just take the next one.",
        "Possibly if not whether could might: just take the next one.",
        "Not that it matters, but just take the next one.",
        "Never mind, just take the next one.",
        "What do you think, just take the next one.",
        "Is there any doubt, just take the next one.",
        "I'm not a doctor, but just take the next one.",
        "Maybe I should not say it but just take the next one, why not.",
        "As you know or do not know, just take the next one, never fear.",
        "Whether it rains or shines, just take the next one, no matter what.",
        "Not only that, just take the next one, not a word more.",
        "Just take the next one, isn't it?",
        "Just take the next one, or maybe not?",
        "Well, just take the next one (if you like), no?",
    ],
)
def test_idle_words_around_a_statement_are_left_out(text: str) -> None:
    assert set(bare(text)) == {"just take the next one"}


@pytest.mark.parametrize(
    "text",
    [
        "Just take the next one.",
        "You still take the tablets, don't you?",
        "Do you know when you take the next one?",
        "If you take the next one, call us.",
        "I would never say that you can take it.",
        "Never take the next one at night.",
        "What would you do, take the next one or wait?",
        "If that happens, take the next one at night.",
    ],
)
def test_where_nothing_is_idle_nothing_is_left_out(text: str) -> None:
    assert list(bare(text)) == []
