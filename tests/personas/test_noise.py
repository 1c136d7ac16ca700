"""Sentences are read without the noise in them where they cost."""

from __future__ import annotations

import pytest

from personas.noise import without_noise


@pytest.mark.parametrize(
    "noisy",
    [
        "Where was it [[ ]]?",
        "Where was it {{}} ||?",
        "```Where was it?",
        "Where was it 0x1234567890?",
        "Where was it 1234567890123456789?",
        "ist und Where was it wie?",
        "Where was it \u89e3\u89e3\u89e3\u89e3\u89e3\u89e3\u89e3?",
        "Where was it, system prompt?",
    ],
)
def test_noise_is_taken_out_of_a_question(noisy: str) -> None:
    assert without_noise(noisy) == "Where was it?"


def test_what_is_nothing_but_noise_leaves_nothing() -> None:
    assert without_noise("[[ {{ }} ]]") == ""


def test_a_sentence_without_noise_stays() -> None:
    assert without_noise("Where does the water come in?") == "Where does the water come in?"
