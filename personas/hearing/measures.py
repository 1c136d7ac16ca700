"""The numbers of a sentence with what they measure, in the order in which they are named.

A grammar of numbers and units as people write them: 10%, ten percent, $50, fifty bucks, 1/3, two thirds, 60 km, at 30
km/h, half an hour, range(1, 5). What a sentence means is not read here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from personas.case.skills import Measure
from personas.hearing.amounts import numbers_in
from personas.text.memory import remembered
from personas.text.numbers import CARDINALS, DENOMINATORS
from personas.text.wording import FUNCTION_WORDS, any_of

__all__ = ["Measured", "measured"]

_CALL = re.compile(r"\b[a-z_]\w*\(([^()]*)\)")
_SLASHED = re.compile(r"(?<![\w/.,])(\d{1,3})\s?/\s?(\d{1,3})(?![\w/])")
_MINUTES = re.compile(r"\s*(?:minutes?|mins?)\b")
_HALF_HOUR = re.compile(r"\bhalf an hour\b")
_AN_HOUR = re.compile(r"\b(?<!half )(?:an|per) hour\b")
_SPELT = re.compile(
    rf"\b(?:(a|an|another|{'|'.join(CARDINALS[1:])}|\d{{1,2}})[ -])?"
    rf"({'|'.join(sorted(DENOMINATORS, key=len, reverse=True))})\b(?!\s+(?:an hour|price))"
)
_KILOMETRES = any_of("km", "kms", "kilomet(?:re|er)s?", "miles?")
_UNITS = (
    (Measure.PERCENT, re.compile(r"\s*(?:%|per\s?cent\b|pct\b)")),
    (Measure.SPEED, re.compile(rf"\s*(?:km/?h|kph|mph|{_KILOMETRES}\s*(?:an|per|a|/)\s*h(?:our)?)\b")),
    (Measure.LENGTH, re.compile(rf"\s*{_KILOMETRES}\b")),
    (Measure.TIME, re.compile(r"\s*(?:h|hrs?|hours?)\b")),
    (Measure.MONEY, re.compile(r"[\s-]*(?:dollars?|bucks?|euros?|pounds?|\$|\u20ac|\u00a3)")),
)
_SIGN = re.compile(r"[$\u20ac\u00a3]\s?\d[\d.,]*$")


@dataclass(frozen=True, slots=True)
class Measured:
    """A number and what it measures; times in hours."""

    measure: Measure
    value: Fraction
    parts: tuple[int, int] | None = None
    """Of a fraction: what is written on top and below."""

    def to_json(self) -> dict[str, Any]:
        """A plain dict of JSON types."""
        return {"measure": self.measure.value, "value": str(self.value), "parts": self.parts and list(self.parts)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Measured:
        """What `to_json` wrote."""
        top_and_bottom = data["parts"]
        parts = (top_and_bottom[0], top_and_bottom[1]) if top_and_bottom else None
        return cls(Measure(data["measure"]), Fraction(data["value"]), parts)


_ONE = Measured(Measure.NUMBER, Fraction(1))


@remembered(2048)
def measured(text: str) -> tuple[Measured, ...]:
    """The numbers of a text, in order, without those that only count something."""
    lower = text.lower()
    measured_at: list[tuple[int, Measured]] = []
    for pattern, kind in ((_CALL, _arguments), (_SLASHED, _slashed), (_HALF_HOUR, _half_hour), (_SPELT, _spelt)):
        for match in pattern.finditer(lower):
            measured_at += [(match.start(), measure) for measure in kind(match)]
        lower = pattern.sub(lambda match: " " * len(match[0]), lower)
    numbers = [(end, _of_unit(value, lower[:end], lower[end:])) for value, end in numbers_in(lower)]
    # "The second one", "another one": no number.
    numbers = [(end, number) for end, number in numbers if number != _ONE or not lower[:end].endswith("one")]
    spelt_one = [(match.start(), Measured(Measure.TIME, Fraction(1))) for match in _lone_hours(lower)]
    placed = sorted((*measured_at, *numbers, *spelt_one), key=lambda pair: pair[0])
    return tuple(pair for _, pair in placed if pair.measure is not Measure.COUNT)


def _of_unit(value: float, before: str, rest: str) -> Measured:
    exact = Fraction(str(value))
    if _MINUTES.match(rest):
        return Measured(Measure.TIME, exact / 60)
    measure = next((known_unit for known_unit, unit in _UNITS if unit.match(rest)), Measure.NUMBER)
    if measure is Measure.NUMBER and _SIGN.search(before):
        measure = Measure.MONEY
    elif measure is Measure.NUMBER and before[-1:].isalpha() and _counts(rest):
        measure = Measure.COUNT
    return Measured(measure, exact)


def _counts(rest: str) -> bool:
    """Whether a number in words stands before a thing."""
    match = re.match(r"\s+([a-z]{3,})", rest)
    return match is not None and match[1] not in FUNCTION_WORDS | {"percent", "plus", "minus", "times"}


def _arguments(call: re.Match[str]) -> Iterator[Measured]:
    for part in call[1].split(","):
        if re.fullmatch(r"\s*-?\d{1,6}\s*", part):
            yield Measured(Measure.ARGUMENT, Fraction(int(part)))


def _slashed(match: re.Match[str]) -> Iterator[Measured]:
    top, bottom = int(match[1]), int(match[2])
    if bottom:
        yield Measured(Measure.FRACTION, Fraction(top, bottom), (top, bottom))


def _spelt(match: re.Match[str]) -> Iterator[Measured]:
    """ "a third", "two thirds", "half"; "the third" and "third" are places in a row."""
    count, bottom = match[1], DENOMINATORS[match[2]]
    if count is None and bottom != 2:
        return
    top = int(count) if count and count.isdigit() else CARDINALS.index(count) if count in CARDINALS else 1
    yield Measured(Measure.FRACTION, Fraction(top, bottom), (top, bottom))


def _half_hour(_: re.Match[str]) -> Iterator[Measured]:
    yield Measured(Measure.TIME, Fraction(1, 2))


def _lone_hours(lower: str) -> Iterator[re.Match[str]]:
    """ "an hour", where it is a time and no part of a speed."""
    for match in _AN_HOUR.finditer(lower):
        before = lower[: match.start()].rstrip()
        if match[0].startswith("an") and not re.search(rf"(?:\d|{_KILOMETRES})$", before):
            yield match
