"""The form of a question, by its grammar."""

from __future__ import annotations

import pytest

from personas.text.questions import Form, form_of


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("Mara, what do you think she will say?", Form.OPEN),
        ("Under which number can we ring you?", Form.OPEN),
        ("Could you tell me, in your own words, what happens next?", Form.OPEN),
        ("May I ask what you paid for it?", Form.OPEN),
        ("Who'd have to agree?", Form.OPEN),
        ("And when does the shop close?", Form.OPEN),
        ("Do you know anybody who could drive you?", Form.POLAR),
        ("Does it hurt when you walk?", Form.POLAR),
        ("Any fever?", Form.POLAR),
        ("Shall I write, or would you rather ring?", Form.CHOICE),
        ("How about Tuesday?", Form.OFFER),
        ("And what about your brother?", Form.OFFER),
        ("Tell me what happened.", Form.NONE),
    ],
)
def test_the_form_of_a_question(text: str, form: Form) -> None:
    assert form_of(text) is form
