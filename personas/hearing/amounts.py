"""Numbers in a sentence, in figures or in words: what an offer names.

Covers what people write in negotiations: 8,900, 8.900, 8 900, 9k, 0.58, nine thousand two hundred, sixty-one cents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from personas.case.schema import Amount

_FIGURE = re.compile(r"(?<![\w.])(\d{1,3}(?:[ ,.]\d{3})+|\d+(?:[.,]\d{1,2})?)(\s?k\b)?(?![\d])", re.IGNORECASE)
_GROUPED = re.compile(r"\d{1,3}(?:[ ,.]\d{3})+")
_WORD = re.compile(r"[a-z]+")
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


def amounts(text: str) -> tuple[float, ...]:
    """Every number that a text names, figures first."""
    return (*_figures(text), *_spelt_out(text.lower()))


def within(bounds: Amount, text: str) -> bool:
    """Whether a text names a number within the bounds."""
    low = bounds.at_least if bounds.at_least is not None else float("-inf")
    high = bounds.at_most if bounds.at_most is not None else float("inf")
    return any(low <= amount <= high for amount in amounts(text))


def _figures(text: str) -> Iterator[float]:
    for found in _FIGURE.finditer(text):
        figure, thousands = found[1], found[2]
        value = float(re.sub(r"[ ,.]", "", figure) if _GROUPED.fullmatch(figure) else figure.replace(",", "."))
        yield value * 1000 if thousands else value


def _spelt_out(text: str) -> Iterator[float]:
    total = current = 0
    open_ = False
    words = ["", "", *_WORD.findall(text), ""]
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
        elif not (open_ and word == "and"):
            if open_:
                yield float(total + current)
            total, current, open_ = 0, 0, False


def _is_one(before: Sequence[str], scale: str) -> bool:
    """Whether a scale counts one: "a hundred", but not "half a thousand"."""
    return scale in _COUNTED and before[-1] == "a" and before[-2] not in _FRACTIONS
