"""Takes disguises off text: look-alike letters, invisible characters, compatibility forms, stacked accents.

A person reads "ｙоu\u200b" as "you", so the persona, the rules and the gates do too: otherwise an agent could be
rude, or promise the forbidden, in letters that nobody here can read. Text in another script is left alone.
"""

from __future__ import annotations

import re
import unicodedata

_LOOKALIKES = str.maketrans(
    "АВЕЅІЈКМНОРСТУХаеорсуіјѕхһԁԛԝӏԌΑΒΕΖΗΙΚΜΝΟΡΤΥΧοναιρκτυ",
    "ABESIJKMHOPCTYXaeopcyijsxhdqwlGABEZHIKMNOPTYXovaipktu",
)
_ACCENTS = re.compile("[\u0300-\u036f\ufe00-\ufe0f]")
_LETTER = re.compile(r"[^\W\d_]")


_BOMBS = str.maketrans({"\ufdfa": " ", "\ufdfb": " "})
"""Single characters whose compatibility form is a whole sentence: a page of them would be a book."""


def undisguised(text: str) -> str:
    """The text as a reader would see it; plain ASCII comes back as it is."""
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKC", text.translate(_BOMBS))
    text = "".join(character for character in text if unicodedata.category(character) != "Cf")
    text = _ACCENTS.sub("", text)
    letters = _LETTER.findall(text)
    latin = sum(letter.isascii() for letter in letters)
    # Look-alikes are letters of their own in a text of their own script.
    return text.translate(_LOOKALIKES) if latin * 2 >= len(letters) else text
