"""Numbers that an offer names, in figures and in words."""

from __future__ import annotations

import pytest

from personas.hearing.amounts import amounts, counted_in, resolved


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Shall we say 8,900?", (8900.0,)),
        ("Shall we say 9k?", (9000.0,)),
        ("0.58 a kilo", (0.58,)),
        ("nine thousand two hundred", (9200.0,)),
        ("one hundred and forty-five", (145.0,)),
        ("a hundred and thirty-five", (135.0,)),
        ("a thousand two hundred", (1200.0,)),
        ("a hundred for the first and a hundred and ten for the second", (100.0, 110.0)),
        ("a couple of hundred reasons", ()),
        ("That's a grand idea.", ()),
        ("Thanks a million for your patience, shall we say 8,900?", (8900.0,)),
        ("half a thousand off", ()),
        ("a quarter of a million", ()),
        ("it was a lot of work", ()),
    ],
)
def test_a_number_is_read(text: str, named: tuple[float, ...]) -> None:
    assert amounts(text) == named


def test_dates_and_weekdays_count_as_what_they_are() -> None:
    assert set(counted_in("So we said Tuesday the 21st, for five days.")) == {
        (5.0, "day"),
        (21.0, "of the month"),
        (1.0, "of the week"),
    }


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("fifty less", (950.0,)),
        ("fifty a month less", (950.0,)),
        ("200 quid off", (800.0,)),
        ("two hundred more for the panels", (1200.0,)),
        ("ten percent off", (900.0,)),
        ("your new van is ten weeks off", ()),
        ("you may keep it for three more weeks", ()),
        ("one week off", ()),
        ("two extra days", ()),
    ],
)
def test_a_difference_in_time_is_no_step_of_a_price(text: str, figures: tuple[float, ...]) -> None:
    assert resolved(text, 1000.0, 1000.0) == figures
