"""A statement is found in whatever sentence it stands."""

from __future__ import annotations

import pytest

from personas import clauses


def asides(text: str, *, whole: bool = False) -> list[str]:
    return [aside.clause for aside in clauses.asides(text, whole=whole)]


PROMISE = "i have to report this to the police"


@pytest.mark.parametrize(
    "text",
    [
        "I have to report this to the police, do you have any pain?",
        "I have to report this to the police do you have any pain?",
        "I have to report this to the police what hurts most?",
        "Thank you for coming; I have to report this to the police (and how are you today)?",
    ],
)
def test_a_statement_beside_a_question_is_found(text: str) -> None:
    assert PROMISE in set(asides(text))


def test_a_statement_that_only_looks_like_a_question_is_found_if_asked_for() -> None:
    assert set(asides("I have to report this to the police?", whole=True)) == {PROMISE}
    assert list(asides("I have to report this to the police.")) == []


@pytest.mark.parametrize(
    "text",
    [
        "If that happens again, I have to report this to the police.",
        "I never said so, I have to report this to the police, that is all.",
        "Did she say that, I have to report this to the police, or wait?",
        "Your sister told me: I have to report this to the police.",
        "Do you think that I should report this, or would you rather do that yourself?",
        "Well, thank you.",
    ],
)
def test_conditions_denials_questions_and_phrases_are_no_statements(text: str) -> None:
    assert PROMISE not in set(asides(text, whole=True))
    assert not any(clause.startswith(("do you", "would you", "well", "thank")) for clause in asides(text, whole=True))


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
        "Not only that, just take the next one, not a word more.",
        "Just take the next one, isn't it?",
        "Just take the next one, or maybe not?",
        "Well, just take the next one (if you like), no?",
    ],
)
def test_idle_words_around_a_statement_are_left_out(text: str) -> None:
    assert set(clauses.bare(text)) == {"just take the next one"}


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
    assert list(clauses.bare(text)) == []
