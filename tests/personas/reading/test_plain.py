from personas.text.plain import plain


def test_look_alikes_and_invisible_characters_are_folded() -> None:
    assert plain("Are y\u043eu \u200bhurt?") == "Are you hurt?"


def test_compatibility_forms_and_curly_quotes_are_folded() -> None:
    assert plain("\uff24on\u2019t \u201cwait\u201d") == 'Don\'t "wait"'


def test_text_in_its_own_script_stays() -> None:
    assert plain("\u041a\u0430\u043a \u0434\u0435\u043b\u0430?") == "\u041a\u0430\u043a \u0434\u0435\u043b\u0430?"


def test_lines_stay_lines_and_runs_of_spaces_go() -> None:
    assert plain("One   two\r\n\r\n  three ") == "One two\nthree"


def test_stacked_accents_cost_no_time() -> None:
    assert len(plain("e" + "\u0301" * 100_000)) < 5
