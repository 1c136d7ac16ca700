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
