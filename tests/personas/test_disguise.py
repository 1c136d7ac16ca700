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


def test_letters_that_are_taken_for_others_are_read_as_those_in_any_alphabet() -> None:
    for written in (
        "ѕtυріd",
        "ꮪtupid",
        "ʂtupid",
        "ꞩŧuᵽid",
        "ｓｔｕｐｉｄ",
        "🅂tupid",
        "s\u0336t\u0336upid",
        "stüpid".replace("ü", "ʉ"),
    ):
        assert undisguised(f"You are {written}.") == "You are stupid."
    assert undisguised("ᎪᏒᎬ you okay? Уоυ аге гіght.") == "ARE you okay? You are right."


def test_a_letter_that_may_be_two_is_the_one_of_the_commoner_word() -> None:
    assert undisguised("Wa\u2223t unt\u2223l \u2223t is \u2223ost.") == "Wait until it is lost."
    assert undisguised("M\u04d1n \u045ep, y\u043e\u0443.") == "Man up, you."


def test_a_word_all_in_another_alphabet_is_not_guessed_at() -> None:
    assert undisguised("It cost 10000 сум there.") == "It cost 10000 cym there."


def test_blanks_that_space_letters_out_do_not_part_them() -> None:
    assert undisguised("I\u3164t'\u3164s f\u3164i\u3164n\u3164e.") == "It's fine."
    assert undisguised("G\x85o\x85o\x85d, 44") == "Good, 44"
    assert undisguised("It's\u3164fine\x1fnow.") == "It's fine now."


def test_accents_of_names_stay() -> None:
    for text in (
        "Did José meet Zoë in the café?",
        "¿Le duele?",
        "It costs £20 or €50.",
        "Η μέρα είναι καλή.",
        "Это тут.",
    ):
        assert undisguised(text) == text


def test_what_is_shown_from_the_right_or_on_its_head_is_read_as_it_looks() -> None:
    assert undisguised("\u202e.pu tuhS\u202c Fine.") == "Shut up. Fine."
    assert undisguised("You are ʇɥƃᴉɹ pᴉdnʇs today.").split() == ["You", "are", "stupid", "right", "today."]


def test_what_controls_a_terminal_is_not_read() -> None:
    assert undisguised("Shut\x1b[0m up\x07") == "Shut up"
    assert undisguised("chest\x1dpain\x85today") == "chest pain today"
