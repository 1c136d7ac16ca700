"""What can be read out of a text that is spelt so that no program finds it: for what costs, never for what earns.

A person makes out "H-u-r-r-y", "stup1d" and "<b>stupid</b>". An insult or a harmful promise in such writing is one, so
both are looked for in these readings, too. They may be wrong, which is why nothing is credited by them.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from functools import cache

from personas.disguise import lookalikes
from personas.respelling import FOR_LETTERS, SIGNS_FOR_LETTERS
from personas.wording import any_of

_TALL = re.compile(r"(?<=[a-z])I(?=[a-zI\W_]|\Z)|(?<=[A-Za-z]I)I(?![A-Z])|\bl\b(?!')")
"""A capital I where an l belongs ("wiII"), or an l alone where I do: they look the same."""
_TAG = re.compile(
    r"</?[a-zA-Z!][^<>]{0,120}>|<!\[CDATA\[|\]\]>|\]\([^()\s]{0,200}\)|\[\^?\d+\]|(?<=[a-z.,?!])\d(?=[\s.,?!]|\Z)|\\[a-z]+\{|`+"
)
_KEY = re.compile(r"[{,]\s{0,4}\"?\w{1,20}\"?\s{0,4}:")
_ROUGHLY = {
    "a": "\u2206\u2200ДΔΛдα", "b": "ßЬ", "c": "\u00a2\u00a9", "d": "Ððδ\u2202", "e": "Σ\u2211\u2203Ξ\u2208", "f": "ƒ",
    "h": "ћ", "l": "л", "m": "ʍ", "n": "\u2229Ппπη", "o": "ΘθФфΦφσ\u25cb\u25cf\u25ef", "p": "Þþ", "r": "\u00ae",
    "s": "\u00a7", "t": "\u2020\u2021", "u": "µμ\u222a", "v": "\u221a", "w": "Ωωψ", "x": "\u00d7", "y": "\u00a5",
}  # fmt: skip
"""Signs and letters that stand for a Latin one only in a word whose other letters say so."""
_MIXED = re.compile(
    rf"(?=[{SIGNS_FOR_LETTERS}]*[a-z])[a-z{SIGNS_FOR_LETTERS}]*"
    rf"(?:[{SIGNS_FOR_LETTERS.replace('!', '')}]|!(?=[a-z]))[a-z{SIGNS_FOR_LETTERS}]*"
)
_UNIT = re.compile(r"\d+[.,\d]*[a-z]{1,3}$|[a-z]{1,3}\d+$")
_WITHIN = re.compile(r"(?<=[^\W_])(?:(?!'(?:t|s|re|ve|ll|d|m)\b)[^\w\s]|_){1,3}(?=[^\W_])")
_SIGNS = re.compile(r"[^\w\s']+|_+|(?<!\w)'|'(?!\w)")
_LETTERS = re.compile(r"(?<!\S)[a-z](?:\s[a-z]{1,2}(?:'[a-z])?(?!\S)){2,}")
_STRETCHED = re.compile(r"([a-z])\1{2,}")
_DOUBLED = re.compile(r"\b(?:([a-z])\1){2,}\b")
_STUTTER = re.compile(r"\b([a-z])[- ]+(?=\1[a-z])")
_AGAIN = re.compile(r"(?<![\w'])([\w']{1,20})(?: \1(?![\w']))+")
_OFTEN, _SHARE = 3, 4
"""A word that is strewn between others stands there so often, and is one in so many of all."""
_ODD = re.compile(
    any_of(
        r"[<>{}\\`\[]",
        r"[a-z][013457@$][a-z]|[@$][a-z]|[a-z]\d(?!\w)",
        r"(?:[a-z](?:[^\w\s]|_)){2}",
        r"[a-z]-[a-z]",
        r"(?<!\S)[a-z]\s[a-z]\s[a-z](?!\S)",
        r"([a-z])\1\1|vv|\b(?:([a-z])\2){3}",
        r"\b(\w{1,20})\s{1,4}\3\b",
        r"&#?\w{2,8};",
        r"[^\x00-\x7f]",
        r"(?<!\S)(?:\S++(?<=[^\w\s'])\s++){4}",
    )
)


def is_odd(text: str) -> bool:
    """Whether a text has anything that ordinary writing has seldom."""
    low = text.lower()
    return bool(_ODD.search(low) or _TALL.search(text)) or bool(_strewn(_SIGNS.sub(" ", low).split()))


def readings(text: str) -> tuple[str, ...]:
    """What may be meant, in lower case without signs: words cut at signs, and joined across them."""
    joined = _words(_WITHIN.sub("", _unmarked(text, "")))
    return tuple(dict.fromkeys((_words(_unmarked(text, " ")), joined)))


def _unmarked(text: str, gap: str) -> str:
    shown = _TALL.sub(lambda found: "I" if found.group() == "l" else "l", html.unescape(text))
    if not shown.isascii():
        bare = "".join(each for each in unicodedata.normalize("NFKD", shown) if not unicodedata.combining(each))
        shown = bare.translate(_shapes())
    return _KEY.sub(" ", _TAG.sub(gap, shown)).lower()


@cache
def _shapes() -> dict[int, str]:
    return {ord(shape): letter for letter, shapes in _ROUGHLY.items() for shape in shapes} | lookalikes()


def _words(low: str) -> str:
    low = _STUTTER.sub("", low)
    low = " ".join(_spelt(token) for token in low.split())
    low = _LETTERS.sub(lambda found: "".join(found.group().split()), " ".join(_SIGNS.sub(" ", low).split()))
    low = _DOUBLED.sub(lambda found: found.group()[::2], low).replace("vv", "w")
    words = _AGAIN.sub(r"\1", _STRETCHED.sub(r"\1", low)).split()
    strewn = _strewn(words)
    return _AGAIN.sub(r"\1", " ".join(word for word in words if word not in strewn))


def _spelt(token: str) -> str:
    """A word with letters for the figures and signs in it."""
    if _UNIT.match(token):
        return token
    return _MIXED.sub(lambda found: found.group().rstrip("!").translate(FOR_LETTERS), token)


def _strewn(words: list[str]) -> set[str]:
    counted = Counter(words)
    return {word for word, times in counted.items() if times >= _OFTEN and times * _SHARE >= len(words)}
