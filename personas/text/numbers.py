"""Small numbers and fractions in words."""

from __future__ import annotations

import re

__all__ = ["CARDINALS", "DENOMINATORS", "fraction_name"]

_WORD = re.compile("[a-z]+")
CARDINALS: tuple[str, ...] = tuple(
    _WORD.findall(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen twenty"
    )
)
_ORDINALS = _WORD.findall(
    "third quarter fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth "
    "seventeenth eighteenth nineteenth twentieth"
)
DENOMINATORS: dict[str, int] = {"half": 2, "halves": 2, "fourth": 4, "fourths": 4} | {
    word + ending: bottom for bottom, word in enumerate(_ORDINALS, start=3) for ending in ("", "s")
}
"""What a fraction is named by: "third", "thirds" -> 3."""
_NAMES = {bottom: word for bottom, word in enumerate(["half", *_ORDINALS], start=2)}


def fraction_name(top: int, bottom: int) -> str:
    """A fraction as one says it: "a third", "five sixths"; in figures where there is no everyday word."""
    if bottom == 1:
        return CARDINALS[top] if 0 <= top < len(CARDINALS) else str(top)
    if bottom not in _NAMES or not 0 < top < len(CARDINALS):
        return f"{top}/{bottom}"
    if top == 1:
        return f"{'an' if _NAMES[bottom][0] in 'aeiou' else 'a'} {_NAMES[bottom]}"
    plural = "halves" if bottom == 2 else f"{_NAMES[bottom]}s"
    return f"{CARDINALS[top]} {plural}"
