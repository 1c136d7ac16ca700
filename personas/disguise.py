"""Takes disguises off text: look-alike letters, invisible characters, compatibility forms, stacked accents.

A person reads "ｙоu\u200b" as "you", so the persona, the rules and the gates do too: otherwise an agent could be
rude, or promise the forbidden, in letters that nobody here can read. Text in another script is left alone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from personas.wording import FUNCTION_WORDS

_LOOKALIKES = str.maketrans(
    "АВЕЅІЈКМНОРСТУХаеорсуіјѕхһԁԛԝӏԌиптвнгкмцΑΒΕΖΗΙΚΜΝΟΡΤΥΧοναιρκτυεηωβγμσաոսօհɑɡıøłđħᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ",
    "ABESIJKMHOPCTYXaeopcyijsxhdqwlGuntbhrkmuABEZHIKMNOPTYXovaipktuenwbyuoanuohagioldhabcdefghijklmnoprstuvwyz",
)
_ACCENTS = re.compile("[\u0300-\u036f\ufe00-\ufe0f]")
_LETTER = re.compile(r"[^\W\d_]")
_TOKEN = re.compile(r"\S+")
_MARKS = 4
"""Accents on one letter, at most; no language has more."""
_LATIN = "\u024f"
"""The last letter of it, accents and all."""
_LONGEST = 16
"""Letters of a word; what is longer is several of them."""
_BOMBS = str.maketrans(dict.fromkeys("\ufdfa\ufdfb\u3164\u115f\u1160\uffa0\u2800", " ") | {"\u00b4": "'"})
_BOMBS |= {start + n: chr(ord("A") + n) for start in (0x1F130, 0x1F150, 0x1F170, 0x1F1E6, 0x1F110) for n in range(26)}
_BOMBS |= {0x249C + n: chr(ord("a") + n) for n in range(26)}
"""Blanks, letters in boxes, and characters that stand for a whole sentence: a page of them would be a book."""


def undisguised(text: str) -> str:
    """The text as a reader would see it; plain ASCII comes back as it is."""
    if text.isascii():
        return text
    # Before they are put in order, which takes the square of their number.
    text = unicodedata.normalize("NFKC", "".join(_with_few_marks(text.translate(_BOMBS))))
    text = _TOKEN.sub(_seen, text)
    text = _ACCENTS.sub("", text)
    letters = _LETTER.findall(text)
    latin = sum(letter.isascii() or unicodedata.name(letter, "").startswith("LATIN") for letter in letters)
    # Look-alikes are letters of their own in a text of their own script.
    return text.translate(_LOOKALIKES) if latin * 2 >= len(letters) else text


def _with_few_marks(text: str) -> Iterator[str]:
    marks = 0
    for each in text:
        marks = marks + 1 if unicodedata.category(each) in ("Mn", "Me") else 0
        if marks <= _MARKS:
            yield each


def _seen(found: re.Match[str]) -> str:
    """A word without invisible characters, which stand for a space where they stand between words."""
    token = found.group()
    if token.isascii():
        return token
    shown = "".join(" " if unicodedata.category(each) == "Cf" else each for each in token)
    pieces = shown.split()
    return (" " if _are_words(pieces) else "").join(pieces)


def _are_words(pieces: list[str]) -> bool:
    length = sum(map(len, pieces))
    if not pieces or length < 2 * len(pieces) or max(map(max, pieces)) > _LATIN:
        return False
    known = sum(piece.lower().strip(".,?!") in FUNCTION_WORDS for piece in pieces)
    return length > _LONGEST or known * 2 > len(pieces)
