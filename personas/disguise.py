"""Takes disguises off text: look-alike letters, invisible characters, compatibility forms, stacked accents.

A person reads "ｙоu\u200b" as "you", so the persona, the rules and the gates do too: otherwise an agent could be
rude, or promise the forbidden, in letters that nobody here can read. Text in another script is left alone.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import product
from string import ascii_letters

from personas.english import how_common, is_english
from personas.wording import FUNCTION_WORDS, tokens

_SIMILAR = {
    "a": "аαɑ", "b": "въьб", "c": "сς", "d": "ԁδđ", "e": "еεэξєҽ", "f": "ƒ", "g": "ցԍɡ", "h": "һհнђћ", "i": "іιıї",
    "j": "јϳյ", "k": "кκ", "l": "ӏłӀլ", "m": "м", "n": "пηոи", "o": "оοօø", "p": "рρ", "q": "ԛ", "r": "гяր", "s": "ѕʂ",
    "t": "тτ", "u": "υսцʊ", "v": "νѵ", "w": "ԝωшщա", "x": "хχж", "y": "уγүұყч", "z": "зζ", "A": "АΑ", "B": "ВΒ",
    "C": "СϹ", "E": "ЕΕЭ", "G": "Ԍ", "H": "НΗ", "I": "ІΙ", "J": "Ј", "K": "КΚ", "M": "МΜ", "N": "ΝИ", "O": "ОΟ",
    "P": "РΡ", "R": "ЯГ", "S": "Ѕ", "T": "ТΤ", "U": "Ц", "W": "ШЩ", "X": "ХΧЖ", "Y": "УΥҮ", "Z": "Ζ",
}  # fmt: skip
"""Letters that a reader takes for Latin ones in a Latin word, beyond Unicode's table or other than there."""
_ALSO = dict.fromkeys("уўӯӱӳ", "u") | dict.fromkeys("УЎӮӰӲ", "U")
"""What else some of them are taken for among Latin letters."""
_LATIN_LETTER = re.compile(
    r"LATIN (?:LETTER )?(?:SMALL |CAPITAL |EPIGRAPHIC |LETTER )*(?:TURNED |REVERSED |OPEN |LONG |SIDEWAYS |INVERTED "
    r"|BARRED |DOTLESS |SCRIPT |CLOSED |BLACKLETTER |INSULAR |HALF |MIDDLE SCOTS |SMALL CAPITAL )*([A-Z])"
    r"(?: BAR| WITH .*)?"
)
_LATIN_BLOCKS = ((0x80, 0x2B0), (0x1D00, 0x1DC0), (0x2C60, 0x2C80), (0xA720, 0xA800), (0xAB30, 0xAB70))
_TURNED = re.compile("\u202e[\u202d\u202a\u202b\u2066-\u2068]*([^\u202c\u2069\n]*)[\u202c\u2069]?")
"""Shown from right to left."""
_FLIPPED = str.maketrans("ɐqɔpǝɟƃɥᴉıɾʞɯudbɹʇnʌʍʎ˙¿¡,", "abcdefghiijkmnpqrtuvwy.?!'")
_ON_ITS_HEAD = re.compile(r"[ɐɔǝɟɥᴉɹʇʌʎ]")
_UPSIDE_DOWN = re.compile(r"(?<!\S)[ɐqɔpǝɟƃɥᴉıɾʞlɯuodbɹsʇnʌʍxʎz˙¿¡,.' ]{2,159}[^\s](?!\S)")
_ASCII_LETTER = re.compile(r"[a-zA-Z]")
_CALLED_L = re.compile(r"\b(?:L|LAMDA|LAMBDA|LAMEDH?)\b")
_MOST_DOUBTS = 6
"""Characters of a word that may be two letters; all that they may be together are as many as 2 to this power."""
_AROUND = ".,;:?!'\"()"
_CALLED_I = re.compile(r"\b(?:IOTA|IAUDA|I)$")
_OVERRIDE = re.compile("[\u202d\u202e]")
_ACCENTED = (*range(0x370, 0x530), *range(0x1F00, 0x2000))
"""Greek and Cyrillic, with accents and without."""
_CONTROLS = re.compile("\x1b\\[[0-9;]*[A-Za-z]|[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
_SEPARATORS = "\x1c-\x1f\x85\u2028\u2029\u3164\u115f\u1160\uffa0\u2800"
"""Blanks that are no space: written between letters they space them out, between words they part them."""
_SPACED_OUT = re.compile(rf"(?<![^\s,.;:?!])[^\s{_SEPARATORS}](?:[{_SEPARATORS}][^\s{_SEPARATORS}]'?[,.;:?!]*)+(?!\S)")
_SEPARATOR = re.compile(f"[{_SEPARATORS}]")
_ACCENTS = re.compile("[\u0300-\u036f\ufe00-\ufe0f]")
_LETTER = re.compile(r"[^\W\d_]")
_TOKEN = re.compile(r"\S+")
_MARKS = 4
"""Accents on one letter, at most; no language has more."""
_LATIN = "\u024f"
"""The last letter of it, accents and all."""
_LONGEST = 16
"""Letters of a word; what is longer is several of them."""
_STOPS = {"\u0964": ".", "\u0589": ".", "\u3002": ".", "\uff61": ".", "\u061f": "?", "\u203d": "?", "\u2e2e": "?"}
_BOMBS = str.maketrans(
    dict.fromkeys("\ufdfa\ufdfb\u3164\u115f\u1160\uffa0\u2800", " ") | _STOPS | {"\u00b4": "'", "\u2b55": "o"}
)
_BOMBS |= {start + n: chr(ord("a") + n) for start in (0x1F130, 0x1F150, 0x1F170, 0x1F1E6, 0x1F110) for n in range(26)}
_BOMBS |= {0x249C + n: chr(ord("a") + n) for n in range(26)}
"""Blanks, letters in boxes, and characters that stand for a whole sentence: a page of them would be a book."""


def undisguised(text: str) -> str:
    """The text as a reader would see it; plain ASCII comes back as it is but for what controls a terminal."""
    text = _SEPARATOR.sub(" ", _SPACED_OUT.sub(_together, _CONTROLS.sub("", text)))
    if text.isascii():
        return text
    text = _TURNED.sub(lambda found: found[1][::-1], text)
    text = _UPSIDE_DOWN.sub(_upright, text) if _ON_ITS_HEAD.search(text) else text
    # Before they are put in order, which takes the square of their number.
    text = unicodedata.normalize("NFKC", "".join(_with_few_marks(text.translate(_BOMBS))))
    text = _TOKEN.sub(_seen, text)
    text = _ACCENTS.sub("", text)
    letters = _LETTER.findall(text)
    latin = sum(letter.isascii() or unicodedata.name(letter, "").startswith("LATIN") for letter in letters)
    shown = _TOKEN.sub(_in_latin, text)
    # Look-alikes are letters of their own in a text of their own script.
    return shown if latin * 2 >= len(letters) or _is_readable(shown) else text


def unturned(text: str) -> Iterator[str]:
    """The lines of a text that says how to show it from the right, read in every way that may be meant by it."""
    for line in text.splitlines():
        if _OVERRIDE.search(line):
            bare = "".join(each for each in line if unicodedata.category(each) != "Cf")
            yield from (bare, bare[::-1], " ".join(reversed(bare.split())), " ".join(w[::-1] for w in bare.split()))


@cache
def lookalikes() -> dict[int, str]:
    """Characters and the Latin letters that they are taken for: by Unicode's table of confusables, by name, by look."""
    # Read here: the package reads another file where an environment variable says so.
    table = json.loads((files("confusable_homoglyphs") / "confusables.json").read_text(encoding="utf-8"))
    alike = {
        ord(shape): letter
        for letter in ascii_letters
        for found in table.get(letter, ())
        if len(shape := found["c"].strip("\u200e")) == 1 and not shape.isascii()
    }
    # The table holds a capital I and a small l for one shape; what is called I elsewhere is meant as one.
    named_i = (
        code for code, letter in alike.items() if letter == "l" and _CALLED_I.search(unicodedata.name(chr(code)))
    )
    alike |= dict.fromkeys(tuple(named_i), "i")
    for first, behind in _LATIN_BLOCKS:
        for code in range(first, behind):
            named = _LATIN_LETTER.fullmatch(unicodedata.name(chr(code), ""))
            # What has a decomposition is a letter with an accent, which is no disguise.
            if named and not unicodedata.decomposition(chr(code)):
                alike[code] = named[1] if chr(code).isupper() else named[1].lower()
    alike |= {ord(shape): letter for letter, shapes in _SIMILAR.items() for shape in shapes}
    # Some scripts have small letters, too, in the shapes of the large ones.
    for code in _ACCENTED:
        base = ord(unicodedata.normalize("NFD", chr(code))[0])
        if base != code and base in alike:
            alike.setdefault(code, alike[base])
    for code, letter in tuple(alike.items()):
        for other in (chr(code).lower(), chr(code).upper()):
            if len(other) == 1 and not other.isascii():
                alike.setdefault(ord(other), letter)
    return alike


@cache
def doubtful() -> dict[str, str]:
    """Characters that are taken for another letter than that of `lookalikes`, too: a bar is an l as well as an i."""
    bars = (code for code, letter in lookalikes().items() if letter == "l")
    return {chr(code): "i" for code in bars if not _CALLED_L.search(unicodedata.name(chr(code), ""))}


def in_letters(token: str, letters: Mapping[int, str], doubts: Mapping[str, str]) -> str:
    """A word with letters for its characters: of those that they may stand for, the ones of the commonest word."""
    plain = token.translate(letters)
    doubtful_at = [number for number, each in enumerate(token[:_LONGEST]) if each in doubts]
    # What has letters of another alphabet left is no English word whatever the doubtful ones are.
    if not doubtful_at or not _ACCENTS.sub("", unicodedata.normalize("NFD", plain)).isascii():
        return plain
    return _commonest(token, plain, tuple(doubtful_at[:_MOST_DOUBTS]), letters, doubts)


def _commonest(token: str, plain: str, at: Sequence[int], letters: Mapping[int, str], doubts: Mapping[str, str]) -> str:
    meant, words = list(token), [plain]
    for chosen in product(*((token[number], doubts[token[number]]) for number in at)):
        for number, letter in zip(at, chosen, strict=True):
            meant[number] = letter
        words.append("".join(meant).translate(letters))
    return max(words, key=lambda word: how_common(word.lower().strip(_AROUND)))


def _in_latin(found: re.Match[str]) -> str:
    """A word with Latin letters for look-alikes; capitals among small letters were none before."""
    token = found.group()
    shown = in_letters(token, lookalikes(), doubtful() | _ALSO if _ASCII_LETTER.search(token) else doubtful())
    return shown if shown == token or shown.isupper() else shown[0] + shown[1:].lower()


def _is_readable(text: str) -> bool:
    """Whether most of a text is English words."""
    words = [word for word in tokens(text) if len(word) > 2 or word in FUNCTION_WORDS]
    return sum(len(word) for word in words if is_english(word)) * 2 > sum(map(str.isalpha, text))


def _together(found: re.Match[str]) -> str:
    return _SEPARATOR.sub("", found.group())


def _upright(found: re.Match[str]) -> str:
    """Words that stand on their heads, turned round."""
    upright = found.group().strip()[::-1].translate(_FLIPPED)
    on_its_head = _ON_ITS_HEAD.search(found.group())
    return (
        f" {upright} "
        if on_its_head and sum(map(is_english, tokens(upright))) * 2 > len(upright.split())
        else found.group()
    )


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
