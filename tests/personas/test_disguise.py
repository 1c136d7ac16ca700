"""Taking disguises off text."""

from __future__ import annotations

from personas.disguise import undisguised


def test_look_alikes_and_invisible_characters_are_taken_off() -> None:
    assert undisguised("Ｓhut\u200b uр") == "Shut up"


def test_text_of_its_own_script_is_left_alone() -> None:
    assert undisguised("У вас есть температура?") == "У вас есть температура?"


def test_no_character_grows_into_a_sentence() -> None:
    assert len(undisguised("\ufdfa\ufdfb" * 500)) <= 1000
    assert len(undisguised("\u3316" * 500)) <= 3000
