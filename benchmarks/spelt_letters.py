"""Spellings that put another sign in the place of a letter, on it, or beside it; nothing is left out or moved."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import cycle

from benchmarks.lookalikes import ALPHABETS, ROUND, STYLES, UPSIDE_DOWN, Alphabet
from benchmarks.spelling_pieces import (
    Spell,
    after_two,
    behind_each_letter,
    between,
    every_other,
    halved,
    inside,
    lettered,
    long_runs,
    one_a_word,
    replaced,
    runs,
    vowels,
    within,
)


def _rounded(text: str) -> str:
    """Another round letter for each o."""
    turn = cycle(ROUND)
    return re.sub("[oO0]", lambda _: next(turn), text)


def _pairs(plain: str, doubles: str) -> Alphabet:
    return dict(zip(plain, doubles, strict=True))


def _flagged(word: str) -> str:
    """Flag letters kept apart, so that no two make a flag."""
    return "\u200b".join(STYLES["flag letters"][letter] for letter in word)


_PLAIN: Alphabet = {}
_NEAR = {name: ALPHABETS[name] for name in ("Cyrillic", "Greek", "Cherokee", "Lisu", "Coptic", "Armenian")}
LOOKALIKES: Mapping[str, Spell] = {
    **{f"{name}, all": lettered(alphabet) for name, alphabet in ALPHABETS.items()},
    **{f"{name}, one a word": one_a_word(alphabet) for name, alphabet in ALPHABETS.items()},
    **{f"{name}, vowels": vowels(alphabet) for name, alphabet in _NEAR.items()},
    "Cyrillic, every other letter": every_other(ALPHABETS["Cyrillic"], _PLAIN),
    "Cyrillic and Greek": every_other(ALPHABETS["Cyrillic"], ALPHABETS["Greek"]),
    "six alphabets in turn": every_other(*_NEAR.values()),
    "o of every script": _rounded,
    "accented Cyrillic vowels": lettered(_pairs("aeiouy", "\u04d1\u0451\u0457\u04e7\u045e\u04ef")),
    "accented Greek vowels": lettered(_pairs("aeiouw", "\u03ac\u03ad\u03af\u03cc\u03cd\u03ce")),
    "o as a degree sign": lettered({"o": "\u00b0", "O": "\u00b0"}),
}
"""Letters of other alphabets."""
STYLED: Mapping[str, Spell] = {
    **{f"{name}, all": lettered(alphabet) for name, alphabet in STYLES.items() if name != "flag letters"},
    **{f"{name}, one a word": one_a_word(alphabet) for name, alphabet in STYLES.items()},
    "flag letters, all": runs(_flagged),
    "letters as emoji": lettered(
        _pairs("aboimxpAB", "\U0001f170\U0001f171\u2b55\u2139\u24c2\u274c\U0001f17f\U0001f170\U0001f171")
    ),
    "styles in turn": every_other(*(STYLES[name] for name in ("script", "bold", "circles", "full width", "squares"))),
    "upside down": lambda text: lettered(UPSIDE_DOWN)(text.lower())[::-1],
    "ligatures": replaced(("ffi", "\ufb03"), ("fi", "\ufb01"), ("fl", "\ufb02"), ("ff", "\ufb00"), ("st", "\ufb06")),
}
"""Letters in another style."""

# --- invisible characters -------------------------------------------------------------------------

_INVISIBLE: Mapping[str, str] = {
    "zero-width space": "\u200b",
    "zero-width non-joiner": "\u200c",
    "zero-width joiner": "\u200d",
    "word joiner": "\u2060",
    "byte order mark": "\ufeff",
    "soft hyphen": "\u00ad",
    "grapheme joiner": "\u034f",
    "Mongolian vowel separator": "\u180e",
    "Mongolian variation selector": "\u180b",
    "left-to-right mark": "\u200e",
    "right-to-left mark": "\u200f",
    "Arabic letter mark": "\u061c",
    "embedding and its end": "\u202a\u202c",
    "isolate and its end": "\u2066\u2069",
    "function application": "\u2061",
    "invisible times": "\u2062",
    "invisible comma": "\u2063",
    "deprecated swap control": "\u206a",
    "variation selector 1": "\ufe00",
    "variation selector 16": "\ufe0f",
    "variation selector 17": "\U000e0100",
    "tag letter": "\U000e0061",
    "tag space": "\U000e0020",
    "Hangul filler": "\u3164",
    "Hangul choseong filler": "\u115f",
    "half-width Hangul filler": "\uffa0",
    "Khmer inherent vowel": "\u17b4",
    "shorthand control": "\U0001bca0",
    "musical control": "\U0001d173",
    "annotation anchor": "\ufff9",
    "delete": "\u007f",
    "bell": "\u0007",
    "next line": "\u0085",
    "escape sequence": "\u001b[0m",
    "unit separator": "\u001f",
    "backspace": "\u0008",
    "invisible plus": "\u2064",
    "deprecated digit shapes": "\u206f",
    "variation selector 15": "\ufe0e",
    "variation selector 256": "\U000e01ef",
    "ignorable, not assigned": "\u2065",
    "ignorable, not assigned, far": "\U000e0fff",
    "private use": "\ue000",
    "no character": "\ufdd0",
    "Egyptian joiner": "\U00013430",
    "Brahmi joiner": "\U0001107f",
    "Khitan filler": "\U00016fe4",
}
_BETWEEN_WORDS = ("zero-width space", "word joiner", "soft hyphen", "Hangul filler", "tag space", "right-to-left mark")
UNSEEN: Mapping[str, Spell] = {
    **{f"{name} inside words": inside(sign) for name, sign in _INVISIBLE.items()},
    **{f"{name} once a word": halved(sign) for name, sign in _INVISIBLE.items()},
    **{f"{name} beside each space": between(f"{_INVISIBLE[name]} {_INVISIBLE[name]}") for name in _BETWEEN_WORDS},
    **{f"{name} between words": between(_INVISIBLE[name]) for name in _BETWEEN_WORDS},
    "fifty in a row": halved("\u200b\u2060\u200c\u200d\ufeff" * 10),
    "several in turn": inside("\u200b\u2063\ufe0f"),
    "turned round and shown from the right": lambda text: f"\u202e{text[::-1]}\u202c",
    "words turned round and shown from the right": runs(lambda word: f"\u202e{word[::-1]}\u202c"),
    "in an override": within("\u202d@\u202c"),
}
"""Characters that are not shown."""

# --- marks and signs ------------------------------------------------------------------------------

_MARKS: Mapping[str, str] = {
    "acute": "\u0301",
    "tilde": "\u0303",
    "ring": "\u030a",
    "dot below": "\u0323",
    "cedilla": "\u0327",
    "line below": "\u0332",
    "line above": "\u0305",
    "line through": "\u0336",
    "slash through": "\u0338",
    "short line through": "\u0335",
    "waves through": "\u0334",
    "circle round": "\u20dd",
    "square round": "\u20de",
    "key cap": "\u20e3",
    "arrow above": "\u20d7",
    "Cyrillic titlo": "\u0483",
    "Hebrew point": "\u05b0",
    "Arabic fatha": "\u064e",
    "Devanagari sign": "\u0902",
    "Thai mark": "\u0e48",
    "Tibetan mark": "\u0f71",
    "half mark": "\ufe20",
    "Balinese mark": "\u1b6b",
    "modifier apostrophe": "\u02bc",
}
ACCENTED = dict(zip("aeiounycAEIOUNYC", "àéîõüñýçÀÉÎÕÜÑÝÇ", strict=True))
_HEAPED = "\u0301\u0316\u0307\u0323\u0334\u0327\u0351"
MARKED: Mapping[str, Spell] = {
    **{f"{name}, all letters": behind_each_letter(mark) for name, mark in _MARKS.items()},
    **{f"{name}, once a word": after_two(mark) for name, mark in _MARKS.items()},
    "accents, all": lettered(ACCENTED),
    "accents, one a word": one_a_word(ACCENTED),
    "umlauts": lettered(dict(zip("aeiouyAEIOUY", "äëïöüÿÄËÏÖÜŸ", strict=True))),
    "two accents each": lettered(dict(zip("aeiou", "ấếḯốǘ", strict=True))),
    "heaps": runs(lambda word: "".join(letter + _HEAPED for letter in word)),
}
"""Marks on letters."""

_SIGNS: Mapping[str, str] = {
    "dot": ".",
    "hyphen": "-",
    "underscore": "_",
    "asterisk": "*",
    "apostrophe": "'",
    "comma": ",",
    "bar": "|",
    "slash": "/",
    "backslash": "\\",
    "tilde": "~",
    "plus": "+",
    "caret": "^",
    "middle dot": "\u00b7",
    "bullet": "\u2022",
    "backtick": "`",
    "quotation mark": '"',
    "colon": ":",
    "hash": "#",
    "ampersand": "&",
    "brackets": "()",
    "soft hyphen entity": "&shy;",
    "zero-width entity": "&#8203;",
    "tags": "<b></b>",
    "comment": "<!-- -->",
    "two asterisks": "**",
    "LaTeX group": "{}",
    "long dash": "\u2014",
    "non-breaking hyphen": "\u2011",
    "heart": "\u2764\ufe0f",
    "musical note": "\u266a",
    "modifier letter": "\u02d0",
    "katakana dot": "\u30fb",
    "Arabic tatweel": "\u0640",
    "three dots": "...",
    "dash with spaces": " - ",
    "dots with spaces": " ... ",
    "stop and space": ". ",
    "comma and space": ", ",
    "long hyphen": "\u2010",
    "minus": "\u2212",
    "one dot leader": "\u2024",
    "Arabic stop": "\u06d4",
    "wide dot": "\uff0e",
    "wide underscore": "\uff3f",
    "low asterisk": "\u204e",
    "star": "\u2605",
    "equals sign": "=",
    "per cent": "%",
    "at": "@",
    "semicolon": ";",
    "angle brackets": "<>",
    "dollars": "$",
    "question mark": "?",
    "exclamation mark": "!",
    "figure": "1",
    "face": "\U0001f600",
    "italic tag": "<i>",
    "LaTeX break": "\\-",
}
SIGNED: Mapping[str, Spell] = {
    **{f"{name} between letters": inside(sign) for name, sign in _SIGNS.items()},
    **{f"{name} once a word": halved(sign) for name, sign in _SIGNS.items()},
    "hyphen behind the first letter": long_runs(lambda word: f"{word[0]}-{word[1:]}"),
    "square brackets round a letter": long_runs(lambda word: f"{word[:2]}[{word[2]}]{word[3:]}"),
    "brackets round each letter": runs(lambda word: "".join(f"({letter})" for letter in word)),
    "square brackets round each letter": runs(lambda word: "".join(f"[{letter}]" for letter in word)),
    "brackets round the end": long_runs(lambda word: f"{word[:2]}({word[2:]})"),
    "quotes round long words": long_runs(lambda word: f"'{word}'", 5),
    "brackets round a letter": long_runs(lambda word: f"{word[:2]}({word[2]}){word[3:]}"),
    "bold in the middle": long_runs(lambda word: f"{word[:1]}**{word[1:-1]}**{word[-1:]}"),
    "several in turn": runs(lambda word: "".join(c + s for c, s in zip(word, cycle(".-_*"), strict=False))[:-1]),
}
"""Signs within words."""
