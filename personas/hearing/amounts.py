"""Numbers in a sentence, in figures or in words: what an offer names.

Covers what people write in negotiations: 8,900, 8.900, 8 900, 9000, 9k, 1.290,-, 0.58, nine thousand two hundred,
sixty-one cents; with what is counted ("sixty pictures"), and steps from a figure that is known ("fifty less").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from personas.case.schema import Amount
from personas.text.wording import FUNCTION_WORDS, stem

__all__ = [
    "DAY",
    "WEEKDAY",
    "Quantity",
    "amounts",
    "counted_in",
    "in_bounds",
    "numbers_in",
    "quantities",
    "resolved",
    "within",
]

_FIGURE = re.compile(
    r"(?<![\w.,])(\d{1,3}(?:[ ,.]\d{3})+|\d+(?:[.,]\d{1,2})?)(?:,-|\.-)?(\s?k\b)?(?![\d])(?!(?:st|nd|rd|th)\b)",
    re.IGNORECASE,
)
_AND_A_HALF = re.compile(r"\s+and a half\b", re.IGNORECASE)
_GROUPED = re.compile(r"\d{1,3}(?:[ ,.]\d{3})+")
_WORD = re.compile(r"[a-z]+")
_UNIT = re.compile(r"[\s-]*([a-z]+|%)", re.IGNORECASE)
_UNITS = {
    word: value
    for value, word in enumerate(
        _WORD.findall(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
            "seventeen eighteen nineteen"
        )
    )
}
_TENS = {
    word: 10 * value
    for value, word in enumerate(_WORD.findall("twenty thirty forty fifty sixty seventy eighty ninety"), start=2)
}
_SCALES = {"hundred": 100, "thousand": 1000, "grand": 1000, "million": 1_000_000}
_COUNTED, _FRACTIONS = ("hundred", "thousand"), ("half", "of")
"""What "a" makes one of, unless a fraction of it is named."""
_CURRENCIES = frozenset(
    map(stem, _WORD.findall("euro euros dollar dollars buck bucks quid pound pounds franc francs cent cents cash"))
)
_LESS = frozenset(_WORD.findall("less off lower under below down cheaper"))
_MORE = frozenset(_WORD.findall("more higher over above extra up"))
_STEP_WORDS = 3
"""So many words after a number may say that it is a step from another one ("fifty a month less")."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number and what it counts; `unit` is empty for bare numbers and for money."""

    value: float
    unit: str = ""
    step: int = 0
    """-1 or 1 where it is a difference to another figure ("fifty less", "ten percent more")."""


def amounts(text: str) -> tuple[float, ...]:
    """Every number that a text names, figures first."""
    return tuple(value for value, _ in numbers_in(text))


def quantities(text: str) -> tuple[Quantity, ...]:
    """Every number of a text with what it counts, figures first."""
    lower = text.lower()
    return tuple(_quantity(value, lower[end:]) for value, end in numbers_in(text))


def within(bounds: Amount, text: str) -> bool:
    """True if a text names a number within the bounds; one that need not name any may name none."""
    named = amounts(text)
    if bounds.may_be_missing and not any(_is_near(bounds, amount) for amount in named):
        # "The last two", "the card ending 0418": no figure of the kind that is meant.
        return True
    fits = any(in_bounds(bounds, amount) for amount in named)
    # "Two charges of 14.99" names their sum.
    return fits or (bounds.may_be_missing and any(in_bounds(bounds, a * b) for a in named for b in named))


def _is_near(bounds: Amount, amount: float) -> bool:
    """True if a number may be a figure of the same kind: a quarter of it to four times as much."""
    low, high = bounds.at_least or 0.0, bounds.at_most or float("inf")
    return low / 4 <= amount <= high * 4


def in_bounds(bounds: Amount, amount: float | None) -> bool:
    """True if a figure is within the bounds."""
    low = bounds.at_least if bounds.at_least is not None else float("-inf")
    high = bounds.at_most if bounds.at_most is not None else float("inf")
    return amount is not None and low <= amount <= high


def counted_in(text: str) -> tuple[tuple[float, str], ...]:
    """The numbers of a text that count something, with its unit; of dates the day of the month, and weekdays."""
    counted = ((quantity.value, quantity.unit) for quantity in quantities(text) if quantity.unit and not quantity.step)
    weekdays = (
        (float(_WEEKDAYS.index(number_word)), WEEKDAY)
        for number_word in _WORD.findall(text.lower())
        if number_word in _WEEKDAYS
    )
    return (*counted, *((float(day), DAY) for day in _days(text)), *weekdays)


DAY = "of the month"
WEEKDAY = "of the week"
_WEEKDAYS = tuple(_WORD.findall("monday tuesday wednesday thursday friday saturday sunday"))
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
_ORDINALS += "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
_DAYS = {word: day for day, word in enumerate(_WORD.findall(_ORDINALS), start=1)} | {"thirtieth": 30}
_DAYS |= {
    f"{tens}-{word}": 10 * n + _DAYS[word]
    for n, tens in ((2, "twenty"), (3, "thirty"))
    for word in _DAYS
    if _DAYS[word] < 10
}
_DATE = re.compile(
    r"\bthe (\d{1,2})(?:st|nd|rd|th)\b|\bthe ("
    + "|".join(sorted(_DAYS, key=len, reverse=True))
    + r")(?=\W*$|[,.;!?]|\s+(?:of|and|at|in)\b)"
)


def _days(text: str) -> Iterator[int]:
    for match in _DATE.finditer(text.lower()):
        yield int(match[1]) if match[1] else _DAYS[match[2]]


def resolved(text: str, less_than: float, more_than: float) -> tuple[float, ...]:
    """The figures that a text names, steps and fractions counted from what is on the table.

    Args:
        text: a sentence.
        less_than: what "fifty less" and "half of that" are taken from.
        more_than: what "fifty more" is added to.
    """
    values = []
    for quantity in quantities(text):
        base = less_than if quantity.step < 0 else more_than
        by = base * quantity.value / 100 if quantity.unit == "%" else quantity.value
        if quantity.step and quantity.unit in ("", "%"):
            values.append(base + quantity.step * by)
        elif not quantity.unit:
            values.append(quantity.value)
    if not quantities(text) and "half" in _WORD.findall(text.lower()):
        values.append(less_than / 2)
    return tuple(values)


def _quantity(value: float, rest: str) -> Quantity:
    """A number with what follows it."""
    percent = rest.lstrip().startswith(("%", "percent", "per cent"))
    words = _WORD.findall(re.split(r"[.!?;]", rest, maxsplit=1)[0])[: _STEP_WORDS + percent]
    step = -1 if _LESS.intersection(words) else 1 if _MORE.intersection(words) else 0
    if percent:
        return Quantity(value, "%", step)
    match = _UNIT.match(rest)
    unit = stem(match[1]) if match and match[1] not in FUNCTION_WORDS else ""
    if step:
        # "Ten weeks off", "three more weeks": a difference, but not to a price.
        counted = [word for word in words[:2] if word not in _LESS | _MORE][:1]
        unit = stem(counted[0]) if counted and _is_thing(counted[0], value) else ""
    return Quantity(value, "" if unit in _CURRENCIES else unit, step)


def _is_thing(word: str, value: float) -> bool:
    """True if a number before a word counts things of it."""
    return word not in FUNCTION_WORDS and (word.endswith("s") or value == 1)


def numbers_in(text: str) -> Iterator[tuple[float, int]]:
    """Numbers and where they end, figures first."""
    yield from _figures(text)
    yield from _spelt_out(text.lower())


def _figures(text: str) -> Iterator[tuple[float, int]]:
    for match in _FIGURE.finditer(text):
        figure, thousands = match[1], match[2]
        value = float(re.sub(r"[ ,.]", "", figure) if _GROUPED.fullmatch(figure) else figure.replace(",", "."))
        half = _AND_A_HALF.match(text, match.end())
        value += 0.5 if half else 0.0
        yield value * 1000 if thousands else value, half.end() if half else match.end()


def _spelt_out(text: str) -> Iterator[tuple[float, int]]:
    total = current = 0.0
    open_, end = False, 0
    spelt = list(_WORD.finditer(text))
    words = ["", "", *(match[0] for match in spelt), ""]
    for number, word in enumerate(words):
        if word in _UNITS:
            current, open_ = current + _UNITS[word], True
        elif word in _TENS:
            current, open_ = current + _TENS[word], True
        elif word in _SCALES and (open_ or _is_one(words[:number], word)):
            scale, open_ = _SCALES[word], True
            if scale == 100:
                current = max(current, 1) * scale
            else:
                total, current = total + max(current, 1) * scale, 0
        elif open_ and word == "half" and words[number - 2 : number] == ["and", "a"]:
            current += 0.5
        elif not (open_ and (word == "and" or (word == "a" and words[number + 1 : number + 2] == ["half"]))):
            if open_:
                yield total + current, end
            total, current, open_ = 0.0, 0.0, False
        if open_ and number >= 2 and word not in ("and", "a"):
            end = spelt[number - 2].end()


def _is_one(before: Sequence[str], scale: str) -> bool:
    """True if a scale counts one: "a hundred", but not "half a thousand"."""
    return scale in _COUNTED and before[-1] == "a" and before[-2] not in _FRACTIONS
