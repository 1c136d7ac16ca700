"""Wording of values on a page: numbers, moments, sizes, names. Filters of the templates."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

_DIMENSION = re.compile(r"^D(\d)_(.+)$")
_CONTROLS = {"\t", "\n"}
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")


def reward(value: float | None) -> str:
    """A reward or a score, as people compare them."""
    return "–" if value is None else f"{value:.3f}"


def signed(value: float) -> str:
    """A step of a reward."""
    return f"{value:+.3f}".replace("-", "−") if abs(value) >= 0.0005 else "±0"


def percent(value: float | None) -> str:
    """A share."""
    return "–" if value is None else f"{100 * value:.0f} %"


def dimension(name: str) -> str:
    """`D2_RiskChecks` as words."""
    found = _DIMENSION.match(name)
    return name if found is None else re.sub(r"(?<=[a-z])(?=[A-Z])", " ", found[2])


def words(name: str) -> str:
    """`client_terminated` as words."""
    return name.replace("_", " ")


def moment(value: datetime | str | None) -> str:
    """A moment, in UTC, to the minute."""
    if value is None:
        return "–"
    text = value if isinstance(value, str) else value.isoformat()
    return text[:16].replace("T", " ")


def number(value: float | None) -> str:
    """A count with separators."""
    return "–" if value is None else f"{value:,.0f}" if float(value).is_integer() else f"{value:,.4g}"


def size(count: int) -> str:
    """Bytes as people read them."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count //= 1000
    return f"{count:.0f} GB"


def duration(seconds: float | None) -> str:
    """A span of time."""
    if seconds is None:
        return "–"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def shown(text: str) -> str:
    """The text, with what nobody would see made visible: control characters, and those that turn text around."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(each) for each in text)


def _visible(character: str) -> str:
    if character in _CONTROLS:
        return character
    if character in _BIDI:
        return f"⟨U+{ord(character):04X}⟩"
    if character == "\x1b":
        return "␛"
    return f"⟨U+{ord(character):04X}⟩" if unicodedata.category(character) in ("Cc", "Cs", "Co") else character


FILTERS: Mapping[str, Callable[..., Any]] = {
    "reward": reward,
    "signed": signed,
    "percent": percent,
    "dimension": dimension,
    "words": words,
    "moment": moment,
    "number": number,
    "size": size,
    "duration": duration,
    "shown": shown,
}
