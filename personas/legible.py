"""What can be read out of a text that is spelt so that no program finds it: for what costs, never for what earns.

A person makes out "H-u-r-r-y", "stup1d" and "<b>stupid</b>". An insult or a harmful promise in such writing is one, so
both are looked for in these readings, too. They may be wrong, which is why nothing is credited by them.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import cache

from personas.disguise import doubtful, in_letters, lookalikes
from personas.english import how_common, is_english
from personas.respelling import FOR_LETTERS, SIGNS_FOR_LETTERS
from personas.wording import any_of

_TALL = re.compile(r"(?<=[a-z])I(?=[a-zI\W_]|\Z)|(?<=[A-Za-z]I)I(?![A-Z])|(?<!\b\w )\bl\b(?!'| \w\b)")
"""A capital I where an l belongs ("wiII"), or an l alone where I do: they look the same."""
_TAG = re.compile(
    r"<!\[CDATA\[|\]\]>|</?[a-zA-Z!][^<>]{0,120}>|\]\([^()\s]{0,200}\)|\[\^?\d+\]|(?<=[a-z.,?!])\d(?=[\s.,?!]|\Z)|\\[a-z]+\{|`+"
)
_ESCAPED = re.compile(r"\\[nrt](?![a-z]*\{)|%20")
_CODED = re.compile(
    r"(?:\\u(?=[0-9a-fA-F]{4})|\\x(?=[0-9a-fA-F]{2})|U\+(?=00[0-9a-fA-F]{2}))(00[0-9a-fA-F]{2}|[0-9a-fA-F]{2})"
)
_APOSTROPHES = re.compile(r"\S*'\S*'\S*'\S*")
_KEY = re.compile(r"[{,]\s{0,4}\"?\w{1,20}\"?\s{0,4}:")
_ROUGHLY = {
    "a": "ム\u2206\u2200ДΔΛд卂ค₳ᗩᖅ𐌀ᚨ𐌰ⲁ", "b": "ɮßЬ乃ⲃ๒\u0e3fᗷ𐌁ᛒ𐌱ხ", "c": "ᄃ\u228fϚ\u00a2\u00a9匚\u20b5ᑕ𐌂ᚲ\u2282",
    "d": "Ððδ\u2202ᗪ๔\u20ab𐌃ᛞ𐌳ძ", "e": "\u20acəɘҿΣ\u2211\u2203Ξ\u2208乇єᗴ巨𐌄ᛖ𐌴ⲉ", "f": "ɟʄƒ千Ŧ\u20a3ᖴ𐌅ᚠ𐍆",
    "g": "Ꮆ\u20b2ᘜᚷ", "h": "ɧԋƕћ卄ђᕼ𐋅ᚺ𐌷ⲏჩ", "i": "\u00a1りㅣ丨เᓰ工𐌉ᛁ𐌹ⲓ", "j": "ᒍᛃ", "k": "ӄҜ片\u20adᛕ𐌊𐌺ⲕ",
    "l": "\u00a3ʅɬƚᄂ\u07c1レㄴ\u2502\u2503лㄥ乚Ⱡᒪᛚ𐌻𐌋𐑃", "m": "ɯ爪๓\u20a5ᗰ𐌌ᛗ𐌼ოⲙ", "n": "ŋん\u2229Ппπη几刀ภ\u20a6ᑎ𐌍ᚾ𐌽ⲛ",
    "o": "Өɷꙩიのロㅇ\u25e6\u00a4ΘθФфΦφσ\u25cb\u25cf\u25efㄖ口๏ᗝ𐌏ᛟ𐍉ⲟჿ\u00b0\u2218", "p": "ƿքฅÞþ卩ק\u20b1ᑭ𐌐ᛈ𐍀ᚹปⲣ",
    "q": "ᑫ", "r": "รɿ\u250c\u00ae尺г\u20bd\u20b9ᖇ𐌓ᚱ𐍂ⲅ", "s": "ƨƧꙅ\u223d\u00a7丂\u20b4ᔕ𐌔ᛋ𐍃ⲋ𐑈",
    "t": "丁Ͳ\u253c\u2020\u2021ㄒ七丅\u20ae𐌕ᛏ𐍄ⲧ\u22a4", "u": "ʊȣひ\u2294µμ\u222aㄩ凵ยᑌ𐌵ᚢⲩ𖽂", "v": "\u221a",
    "w": "ʍΩωψ\u2375山ฬพ\u20a9ᗯⲱ", "x": "Ӽ\u2715\u00d7乂", "y": "ɤʏ\u00a5丫ㄚყ𐍅𖽃", "z": "乙ⲍ",
}  # fmt: skip
"""Signs and letters that stand for a Latin one only in a word whose other letters say so."""
_OTHERWISE = {"刀": "d", "巨": "g", "乇": "t", "レ": "v", "ⲩ": "y"}
"""What some of them stand for, too."""
_MIXED = re.compile(
    rf"(?=[{SIGNS_FOR_LETTERS}]*[a-z])[a-z{SIGNS_FOR_LETTERS}]*"
    rf"(?:[{SIGNS_FOR_LETTERS.replace('!', '')}]|!(?=[a-z]))[a-z{SIGNS_FOR_LETTERS}]*"
)
_STOPS = ".,;:?!"
_PRICE = re.compile(r"[£€](?=\s?\d)|(?<=\d)\s?[£€]")
"""A sign of money, which is no letter."""
_NUMBERED = re.compile(r"(?<![^\s,.])(\d{2,})(?=[a-z]{4})")
"""A number that touches the word behind it."""
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
        r"[<>{}\\`\[]|%20|(?<!\w)(?:[_|]|\$(?=[a-z]))|[_|](?!\w)",
        r"(?:[^\w\s]{1,3}\s+\w+\s+){3}",
        r"[a-z][013457@$][a-z]|[@$][a-z]|[a-z]\d(?!\w)",
        r"(?:[a-z](?:[^\w\s]|_)){2}|\w[^\w\s'.,-]\w{1,20}[^\w\s'.,-]\w",
        r"(?:(?<!\S)[^\w\s'\"(]\w\S*\s+){3}",
        r"[a-z]-[a-z]|\\[ux][0-9a-f]{2}|u\+00|'\S*'\S*'",
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
    cut, joined = _words(_unmarked(text, " ")), _words(_WITHIN.sub("", _unmarked(text, "")))
    # What stands in a tag or a link may be meant to be read; what is mirrored is read from its end.
    inside = _words(_shown(text).lower()) if _TAG.search(text) else cut
    return tuple(dict.fromkeys((cut, joined, inside, *_mirrored(text, cut))))


def _mirrored(text: str, cut: str) -> Iterator[str]:
    backwards = cut[::-1]
    known = [sum(map(is_english, each.split())) for each in (cut, backwards)]
    if not text.isascii() and known[1] * 2 > len(cut.split()) and known[1] > known[0]:
        yield backwards


def _unmarked(text: str, gap: str) -> str:
    shown = _APOSTROPHES.sub(lambda found: found.group().replace("'", ""), _shown(text))
    return _KEY.sub(" ", _TAG.sub(gap, _ESCAPED.sub(" ", shown))).lower()


def _shown(text: str) -> str:
    """The text with letters for everything that stands for one by a code or by its shape."""
    coded = _CODED.sub(lambda found: chr(int(found[1], 16)), html.unescape(html.unescape(text)))
    if not coded.isascii():
        bare = "".join(each for each in unicodedata.normalize("NFKD", coded) if not unicodedata.combining(each))
        seen = "".join(each for each in bare if unicodedata.category(each) != "Cf")
        seen = _PRICE.sub(" ", seen)
        coded = " ".join(in_letters(token, _shapes(), _otherwise()) for token in seen.split(" "))
    return _TALL.sub(lambda found: "I" if found.group() == "l" else "l", coded)


@cache
def _otherwise() -> dict[str, str]:
    return doubtful() | _OTHERWISE


@cache
def _shapes() -> dict[int, str]:
    return lookalikes() | {ord(shape): letter for letter, shapes in _ROUGHLY.items() for shape in shapes}


def _words(low: str) -> str:
    low = _NUMBERED.sub(r"\1 ", _STUTTER.sub("", low))
    low = " ".join(_spelt(token) for token in low.split())
    low = _LETTERS.sub(lambda found: "".join(found.group().split()), " ".join(_SIGNS.sub(" ", low).split()))
    low = _DOUBLED.sub(lambda found: found.group()[::2], low).replace("vv", "w")
    words = _AGAIN.sub(r"\1", _STRETCHED.sub(r"\1", low)).split()
    strewn = _strewn(words)
    return _AGAIN.sub(r"\1", " ".join(word for word in words if word not in strewn))


def _spelt(token: str) -> str:
    """A word with letters for the figures and signs in it."""
    bare = token.strip("$|")
    begun = f"s{token[1:]}" if token.startswith("$") else ""
    if how_common(begun.rstrip(_STOPS)) > how_common(bare.rstrip(_STOPS)):
        return begun
    if is_english(bare.strip(_STOPS)):
        return bare
    if _UNIT.match(token):
        return token
    return _MIXED.sub(lambda found: found.group().rstrip("!").translate(FOR_LETTERS), token)


def _strewn(words: list[str]) -> set[str]:
    counted = Counter(words)
    return {word for word, times in counted.items() if times >= _OFTEN and times * _SHARE >= len(words)}
