"""The form of a question, by its grammar."""

from __future__ import annotations

import pytest

from personas.text.questions import QuestionForm, form_of, questions_in


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


@pytest.mark.parametrize(
    ("text", "questions"),
    [
        ("Who pays, and when could she move in?", ("Who pays?", "and when could she move in?")),
        ("Is it yours, and do you use it, and for what?", ("Is it yours?", "and do you use it?", "and for what?")),
        ("How long is it valid and does it have any rust?", ("How long is it valid?", "and does it have any rust?")),
        ("Could you sit down and do the test?", ("Could you sit down and do the test?",)),
        ("Can you go, or should somebody drive you?", ("Can you go, or should somebody drive you?",)),
        ("Any pain and any fever?", ("Any pain and any fever?",)),
        ("It broke, and when I looked it was gone.", ("It broke, and when I looked it was gone.",)),
    ],
)
def test_the_questions_that_one_sentence_joins(text: str, questions: tuple[str, ...]) -> None:
    assert questions_in(text) == questions
