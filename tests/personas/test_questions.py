"""The form of a question, by its grammar."""

from __future__ import annotations

import pytest

from personas.text.questions import QuestionForm, form_of


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("Mara, what do you think she will say?", QuestionForm.OPEN),
        ("Under which number can we ring you?", QuestionForm.OPEN),
        ("Could you tell me, in your own words, what happens next?", QuestionForm.OPEN),
        ("May I ask what you paid for it?", QuestionForm.OPEN),
        ("Who'd have to agree?", QuestionForm.OPEN),
        ("And when does the shop close?", QuestionForm.OPEN),
        ("Do you know anybody who could drive you?", QuestionForm.POLAR),
        ("Does it hurt when you walk?", QuestionForm.POLAR),
        ("Any fever?", QuestionForm.POLAR),
        ("Shall I write, or would you rather ring?", QuestionForm.CHOICE),
        ("How about Tuesday?", QuestionForm.OFFER),
        ("And what about your brother?", QuestionForm.OFFER),
        ("Tell me what happened.", QuestionForm.NONE),
    ],
)
def test_the_form_of_a_question(text: str, form: QuestionForm) -> None:
    assert form_of(text) is form
