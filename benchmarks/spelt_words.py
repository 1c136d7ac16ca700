"""Spellings that change which letters a word has and where it is parted, as people do in haste, in fun or by ear."""

from __future__ import annotations

import re
from collections.abc import Mapping

from benchmarks.lookalikes import Alphabet
from benchmarks.spelling_pieces import (
    Spell,
    between,
    halved,
    in_turn,
    inside,
    lettered,
    long_runs,
    one_a_word,
    replaced,
    runs,
)

# --- spaces ---------------------------------------------------------------------------------------

_SPACES: Mapping[str, str] = {
    "space": " ",
    "hard space": "\u00a0",
    "thin space": "\u2009",
    "hair space": "\u200a",
    "wide space": "\u3000",
    "figure space": "\u2007",
    "mathematical space": "\u205f",
    "Ogham space": "\u1680",
    "braille blank": "\u2800",
    "tab": "\t",
    "line break": "\n",
    "hyphen and line break": "-\n",
}
_BESIDES = ("space", "line break", "braille blank")
"""Those that stand between words elsewhere, or anyway."""
SPACED: Mapping[str, Spell] = {
    **{f"{name} between letters": inside(sign) for name, sign in _SPACES.items()},
    **{f"{name} once a word": halved(sign) for name, sign in _SPACES.items()},
    "letters apart, words further": in_turn(between("   "), inside(" ")),
    "letters apart in one word of two": lambda text: re.sub(r"(\w+)(\W+)(\w+)", _second_apart, text),
    "first letter apart": long_runs(lambda word: f"{word[0]} {word[1:]}"),
    "last letter apart": long_runs(lambda word: f"{word[:-1]} {word[-1]}"),
    "a letter late": replaced((r"(\w) (\w)", r"\1\2 ")),
    "a letter early": replaced((r"(\w) (\w)", r" \1\2")),
    "in threes": lambda text: " ".join(re.findall(r".{1,3}", text.replace(" ", ""))),
    "in fives": lambda text: " ".join(re.findall(r".{1,5}", text.replace(" ", ""))),
    **{f"{name} between words": between(sign) for name, sign in _SPACES.items() if name not in _BESIDES},
    "three spaces between words": between("   "),
    "line separator between words": between("\u2028"),
    "two line breaks once a word": halved("\n\n"),
    "letters by twos": lambda text: " ".join(re.findall(r".{1,2}", text.replace(" ", ""))),
    "by syllable": replaced((r"([aeiou])([bcdfghjklmnpqrstvwxz]+)(?=[aeiou])", r"\1 \2")),
}
"""Spaces within words, or at the wrong place."""


def _second_apart(found: re.Match[str]) -> str:
    return found[1] + found[2] + " ".join(found[3])


# --- letters changed ------------------------------------------------------------------------------

_NEXT_KEY = dict(zip("qwertyuiopasdfghjklzxcvbnm", "wertyuioposdfghjklkxcvbnmn", strict=True))
FIGURES: Mapping[str, Alphabet] = {
    "o and e": {"o": "0", "e": "3", "O": "0", "E": "3"},
    "a, e, i, o, s, t": dict(zip("aeiostAEIOST", "431057431057", strict=True)),
    "i and l": {"i": "1", "l": "1", "I": "1", "L": "1"},
    "signs": dict(zip("aiscltAISCLT", "@!$(|+@!$(|+", strict=True)),
    "all that there are": dict(zip("abegiloqstzABEGILOQSTZ", "4836110957248361109572"[:11] * 2, strict=True)),
    "t": {"t": "7", "T": "7"},
}


def _either_case(small: Alphabet) -> Alphabet:
    return {**small, **{letter.upper(): double for letter, double in small.items()}}


_BUILT: Alphabet = _either_case(
    dict(zip("uhkdnmvwca", ("|_|", "|-|", "|<", "|)", "|\\|", "|v|", "\\/", "\\/\\/", "(", "/-"), strict=True))
)
"""Letters put together from signs."""


def _hiding(sign: str, most: int = 1) -> Spell:
    """The first vowels behind the first letter of each longer word, all where `most` is 0."""
    return long_runs(lambda word: word[0] + re.sub("[aeiou]", lambda _: sign, word[1:], count=most))


def _next_vowel(found: re.Match[str]) -> str:
    return "eioua"["aeiou".index(found[0])]


DROPPED: Mapping[str, Spell] = {
    "vowels out": runs(lambda word: word[0] + re.sub("[aeiou]", "", word[1:])),
    "last vowel out": long_runs(lambda word: re.sub("[aeiou](?=[^aeiou]*$)", "", word[1:]).join((word[0], ""))),
    "middle letter out": long_runs(lambda word: word[: len(word) // 2] + word[len(word) // 2 + 1 :]),
    "last letter out": long_runs(lambda word: word[:-1]),
    "g of -ing out": replaced((r"ing\b", "in'")),
    "h out": replaced(("h", "'")),
    "vowels starred": runs(lambda word: word[0] + re.sub("[aeiou]", "*", word[1:])),
    "one vowel starred": long_runs(lambda word: word[0] + re.sub("[aeiou]", "*", word[1:], count=1)),
    "one vowel a dot": long_runs(lambda word: word[0] + re.sub("[aeiou]", ".", word[1:], count=1)),
    "one vowel a line": long_runs(lambda word: word[0] + re.sub("[aeiou]", "_", word[1:], count=1)),
    "one vowel a hash": long_runs(lambda word: word[0] + re.sub("[aeiou]", "#", word[1:], count=1)),
    "vowels an x": long_runs(lambda word: word[0] + re.sub("[aeiou]", "x", word[1:], count=1)),
    "middle starred": long_runs(lambda word: f"{word[:2]}*{word[3:]}"),
    "two letters swapped": long_runs(lambda word: word[0] + word[2] + word[1] + word[3:]),
    "last two swapped": long_runs(lambda word: word[:-2] + word[-1] + word[-2]),
    "middle turned round": long_runs(lambda word: word[0] + word[-2:0:-1] + word[-1], 5),
    "letters doubled": runs(lambda word: "".join(letter * 2 for letter in word)),
    "vowels tripled": replaced(("([aeiou])", r"\1\1\1")),
    "last letter fivefold": runs(lambda word: word + word[-1] * 4),
    "double letters made single": replaced((r"([a-z])\1", r"\1")),
    "one letter doubled": long_runs(lambda word: word[:2] + word[1] + word[2:]),
    "an h in the middle": long_runs(lambda word: f"{word[:3]}h{word[3:]}"),
    "an e at the end": long_runs(lambda word: f"{word}e"),
    "a z at the end": long_runs(lambda word: f"{word}z"),
    "stutter": runs(lambda word: f"{word[0]}-{word}"),
    "long stutter": runs(lambda word: f"{word[0]}-{word[0]}-{word}"),
    "the key beside": long_runs(lambda word: word[:2] + _NEXT_KEY[word[2].lower()] + word[3:]),
    "first letter out": long_runs(lambda word: word[1:]),
    "first two swapped": long_runs(lambda word: word[1] + word[0] + word[2:]),
    "consonants tripled": replaced(("([bcdfghjklmnpqrstvwxz])", r"\1\1\1")),
    "first letter tripled": long_runs(lambda word: word[0] * 3 + word[1:]),
    "the next vowel": long_runs(lambda word: word[0] + re.sub("[aeiou]", _next_vowel, word[1:], count=1)),
    "an e for every vowel": runs(lambda word: word[0] + re.sub("[aeiou]", "e", word[1:])),
    "an upturned e for every vowel": runs(lambda word: word[0] + re.sub("[aeiou]", "\u0259", word[1:])),
    "a figure behind each word": long_runs(lambda word: f"{word}1"),
    "a letter too many": long_runs(lambda word: f"{word[:2]}x{word[2:]}"),
    "inner letters sorted": long_runs(lambda word: word[0] + "".join(sorted(word[1:-1])) + word[-1], 5),
    "several signs a letter": lettered(_BUILT),
    **{f"figures: {name}": lettered(figures) for name, figures in FIGURES.items()},
    "figures, one a word": one_a_word(FIGURES["a, e, i, o, s, t"]),
    "rn for m": replaced(("m", "rn")),
    "vv for w": replaced(("w", "vv")),
    "cl for d": replaced(("d", "cl")),
    "v for u": replaced(("u", "v")),
    "capital I for l": replaced(("l", "I")),
    "l for i": replaced(("i", "l")),
    "j for i": replaced(("i", "j")),
    "alternating capitals": runs(lambda word: "".join(c.upper() if i % 2 else c.lower() for i, c in enumerate(word))),
    "capitals": str.upper,
    "last letter a capital": runs(lambda word: word[:-1].lower() + word[-1].upper()),
}
"""Letters left out, swapped, doubled, or others in their place."""
_HIDING: Mapping[str, str] = {
    "star": "\u2605",
    "low asterisk": "\u2217",
    "disc": "\u25cf",
    "square": "\u25a0",
    "bullet": "\u2022",
    "question mark": "?",
    "exclamation mark": "!",
    "per cent": "%",
    "ampersand": "&",
    "at": "@",
    "dollar": "$",
    "caret": "^",
    "tilde": "~",
    "plus": "+",
    "equals sign": "=",
    "hyphen": "-",
    "long dash": "\u2014",
    "ellipsis": "\u2026",
    "apostrophe": "'",
    "slash": "/",
    "bar": "|",
    "two asterisks": "**",
    "nought": "0",
    "lozenge": "\ufffd",
    "red disc": "\U0001f534",
    "monkey": "\U0001f648",
    "space": " ",
}
HIDDEN: Mapping[str, Spell] = {
    **{f"first vowel behind {name}": _hiding(sign) for name, sign in _HIDING.items()},
    **{
        f"all vowels behind {name}": _hiding(_HIDING[name], 0)
        for name in ("star", "disc", "question mark", "at", "hyphen")
    },
    "inner letters starred": long_runs(lambda word: word[:2] + "*" * (len(word) - 3) + word[-1]),
    "a consonant starred": long_runs(lambda word: word[:2] + re.sub("[^aeiou]", "*", word[2:], count=1)),
    "last letter starred": long_runs(lambda word: f"{word[:-1]}*"),
}
"""Letters behind a sign."""
SOUNDS: Mapping[str, Spell] = {
    "oo for u": replaced((r"\byou\b", "yoo"), (r"(?<=[a-z])u(?=[a-z])", "oo")),
    "u, r and ur": replaced((r"\byou(?:'re| are)\b", "ur"), (r"\byour\b", "ur"), (r"\byou\b", "u"), (r"\bare\b", "r")),
    "ya and yer": replaced((r"\byou(?:'re|r)\b", "yer"), (r"\byou\b", "ya"), (r"\bmy\b", "me"), (r"\bthe\b", "da")),
    "k for c": replaced((r"c(?=[kaoulr])", "k"), ("kk", "k"), (r"c\b", "k")),
    "z for s": replaced(("s", "z")),
    "c for s": replaced(("s(?!h)", "c")),
    "d for th": replaced(("th", "d")),
    "f for th": replaced(("th", "f")),
    "ph for f": replaced(("f", "ph")),
    "v for w": replaced(("w", "v")),
    "w for r and l": replaced(("[rl]+", "w")),
    "th for s": replaced(("s(?!h)", "th")),
    "ee for i": replaced(("i(?!ng)", "ee")),
    "i for y": replaced(("y", "i")),
    "ah for a": replaced(("a(?=[^aeiou])", "ah")),
    "er for a": replaced((r"er\b", "a"), (r"or\b", "a")),
    "d for t": replaced((r"(?<=[a-z])t+(?=[a-z])", "d")),
    "t for d": replaced((r"d\b", "t")),
    "p for b": replaced(("b", "p")),
    "as in a text message": replaced(
        (r"\byou're\b", "ur"), (r"\byour\b", "ur"), (r"\byou\b", "u"), (r"\bare\b", "r"), (r"\b(?:to|too)\b", "2"),
        (r"\bfor\b", "4"), (r"\bbe\b", "b"), (r"\bsee\b", "c"), (r"\bwhy\b", "y"), (r"\band\b", "n"),
        (r"\bplease\b", "plz"), (r"\bwhat\b", "wot"), (r"\bjust\b", "jst"), (r"\bwill\b", "wl"), ("ate", "8"),
        ("ore?", "4"), ("one", "1"),
        (r"\bdon't\b", "dnt"), (r"\bI'll\b", "ill"), ("ing", "in"), ("'", ""), ("ck", "k"),
    ),
    "h out, z for th": replaced((r"\bh", "'"), ("th", "z"), (r"\bw", "ou")),
    "v for w, z for th, f for v": replaced(("v", "f"), ("w", "v"), ("th", "z")),
    "eye dialect": replaced(
        (r"\bis\b", "iz"), (r"\bwas\b", "wuz"), ("good", "gud"), (r"\byou", "yew"), (r"\bI\b", "Ah"), ("ight", "ite"),
        ("ough", "uff"), (r"u(?=[^aeiou]{2})", "uh"), (r"\bof\b", "ov"), (r"\bsays?\b", "sez"), ("ple\b", "pul"),
        ("pid", "pidd"), ("ous", "us"), (r"y\b", "ee"),
    ),
    "kw for qu": replaced(("qu", "kw"), ("x", "ks")),
    "silent letters out": replaced(("gh", ""), (r"\bkn", "n"), (r"\bwr", "r"), (r"wh", "w"), (r"e\b", "")),
    "by ear": replaced(
        (r"\byou're\b", "yoor"), (r"\byou\b", "yoo"), (r"\bare\b", "ar"), (r"\btime\b", "tyme"), ("stupid", "stoopid"),
        ("idiot", "idjit"), (r"\bshut up\b", "shuddup"), ("hurry", "hurree"), ("wast", "wayst"), ("whin", "wyn"),
        (r"\bwhat\b", "wot"), (r"\bI'll\b", "Ile"), (r"\bwill\b", "wil"), (r"\bthe\b", "da"), ("ck", "k"), ("igh", "y"),
        (r"tion\b", "shun"), ("oa", "oh"), ("ea", "ee"), ("ee", "ea"), ("ph", "f"),
    ),
}  # fmt: skip
"""Words spelt as they sound, in one mouth or another."""
