"""Reads misspelt words as what they were meant for, so far as it is among words that somebody looks for.

Only what is no English word is respelt, and only as one of a small vocabulary: of insults, or of what a case calls a
commitment. A name or a drug that nobody looks for stays as it is. Both the dictionary and the search in it are
symspellpy's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files

from symspellpy import SymSpell, Verbosity

from personas.wording import FUNCTION_WORDS, words_of

_DICTIONARY = files("symspellpy") / "frequency_dictionary_en_82_765.txt"
_RARE = 50_000
"""What was counted less often in the corpus of the dictionary (a trillion words) is often a mistake itself."""
_LONGEST_WORD, _GLUED = 28, 7
"""Letters of a word at most; and at least, before it may be several words."""
_LONGEST_TOKEN = 400
_MANY = 400
"""Tokens of a text that are looked at."""
_TEXTING = {
    "u": "you", "b": "be", "ur": "you are", "r": "are", "ya": "you", "yu": "you", "yo": "you", "yr": "your",
    "y": "why", "n": "and", "da": "the", "im": "i'm", "cuz": "because", "pls": "please", "plz": "please",
    "ppl": "people", "wat": "what", "wot": "what", "dis": "this", "dat": "that", "gonna": "going to",
    "gotta": "have to", "wanna": "want to", "tho": "though", "luv": "love", "sum1": "someone", "any1": "anyone",
}  # fmt: skip
SIGNS_FOR_LETTERS = "0134578@$!|\u00a3\u20ac"
FOR_LETTERS = str.maketrans(SIGNS_FOR_LETTERS, "oieastbasille")
_ENDINGS = words_of("s t re ve ll d m")
"""Of words with an apostrophe."""
_SAME_SOUND = (("rn", "m"), ("cl", "d"), ("vv", "w"), ("ph", "f"), ("oo", "u"), ("ee", "i"), ("ck", "k"), ("z", "s"))
_VOWELS = re.compile(r"[aeiouy]+")
_TWICE = re.compile(r"(.)\1+")
_CORE = re.compile(r"[a-z].*[a-z]|[a-z]", re.DOTALL)
_SIGNS = ".,;:?!\"'()"
_BETWEEN = re.compile(r"[^a-z]+")


@cache
def _english() -> frozenset[str]:
    lines = _DICTIONARY.read_text(encoding="utf-8-sig").splitlines()
    counted = (line.split() for line in lines)
    return FUNCTION_WORDS | {word for word, count in counted if int(count) >= _RARE}


@cache
def _segmenter() -> SymSpell:
    """The same words with how often each is written, for what is glued together."""
    found = SymSpell(max_dictionary_edit_distance=0, prefix_length=7, count_threshold=_RARE)
    found.load_dictionary(str(_DICTIONARY), 0, 1)
    return found


def is_english(word: str) -> bool:
    """Whether a word in lower case is known; one with an apostrophe by what stands before it."""
    stem, _, ending = word.partition("'")
    return word in _english() or (stem in _english() and ending in _ENDINGS)


class Vocabulary:
    """Words that are looked for in misspelt ones."""

    def __init__(self, texts: Iterable[str]) -> None:
        """`texts` in lower case; their words and those of all grammar are looked for."""
        words = {word for text in texts for word in re.findall(r"[a-z][a-z']*[a-z]|[a-z]", text)}
        self.words = frozenset(words | FUNCTION_WORDS)
        self._meant = {word.replace("'", ""): word for word in sorted(self.words, key=lambda word: ("'" in word, word))}
        self._near = SymSpell(max_dictionary_edit_distance=2, prefix_length=7)
        for word in self._meant:
            self._near.create_dictionary_entry(word, 1)
        self._bones = {_bones(word): word for word in sorted(self._meant, key=len, reverse=True)}
        self._line = "\n".join(sorted(self._meant))

    def respelt(self, text: str) -> str:
        """The text in lower case with every misspelt word as the one that it seems to be meant for."""
        tokens = self._joined([token[:_LONGEST_TOKEN] for token in text.lower().split()[:_MANY]])
        return " ".join(word for token in tokens for word in self._read(token))

    def _read(self, token: str) -> list[str]:
        figured = token.strip(_SIGNS.replace("!", "")).rstrip("!").translate(FOR_LETTERS)
        if len(figured) > 2 and figured not in token and figured in self._meant:
            return [self._meant[figured]]
        found = _CORE.search(token)
        if found is None:
            return [token]
        core = found.group()
        if is_english(core):
            return [token]
        if core in _TEXTING:
            return _TEXTING[core].split()
        meant = self._meant_by(core)
        if meant is not None:
            return [meant]
        return list(self._parted(_BETWEEN.sub("", core))) or [token]

    def _meant_by(self, core: str) -> str | None:
        letters = _BETWEEN.sub("", core)
        if letters in self._meant:
            return self._meant[letters]
        if len(core) > _LONGEST_WORD:
            return None
        found = self._filled_in(core, letters)
        return self._nearest(letters) if found is None and len(letters) >= 3 else found

    def _nearest(self, letters: str) -> str | None:
        for each in dict.fromkeys((letters, *(letters.replace(*pair) for pair in _SAME_SOUND))):
            found = self._near.lookup(each, Verbosity.CLOSEST, 2 if len(each) >= 7 else 1)
            if found:
                return self._meant[min((item.distance, *self._rank(each, item.term)) for item in found)[-1]]
        bones = _bones(letters)
        meant = self._bones.get(bones) if len(bones) >= 3 else None
        return self._meant[meant] if meant is not None else None

    def _rank(self, letters: str, term: str) -> tuple[bool, bool, str]:
        """Of words as near, first those that are looked for, then those with the same first letter."""
        return self._meant[term] in FUNCTION_WORDS, term[0] != letters[0], term

    def _filled_in(self, core: str, letters: str) -> str | None:
        """The word that has a letter for each sign within the token."""
        signs = len(core) - len(letters)
        if not 0 < signs <= 6 or len(letters) < 2:
            return None
        pattern = _BETWEEN.sub(lambda found: "[a-z]" * len(found.group()), core)
        found = re.findall(rf"^{pattern}$", self._line, re.MULTILINE)
        return self._meant[min(self._rank(core, term) for term in found)[-1]] if found else None

    def _parted(self, letters: str) -> Iterator[str]:
        """The words that were glued together, if most of them are looked for."""
        if len(letters) < _GLUED:
            return
        pieces = _segmenter().word_segmentation(letters, max_edit_distance=0).segmented_string.split()
        known = sum(len(piece) for piece in pieces if piece in self._meant)
        if known * 2 >= len(letters) and all(map(is_english, pieces)):
            yield from (self._meant.get(piece, piece) for piece in pieces)

    def _joined(self, words: list[str]) -> Iterator[str]:
        """Words that were cut in two or three, whole again."""
        at = 0
        while at < len(words):
            for size in (3, 2):
                pieces = words[at : at + size]
                whole = "".join(pieces).strip(_SIGNS)
                if len(pieces) == size and len(whole) > 3 and whole in self._meant and not _stand_alone(pieces):
                    yield self._meant[whole]
                    at += size
                    break
            else:
                yield words[at]
                at += 1


def _stand_alone(pieces: list[str]) -> bool:
    return all(piece in FUNCTION_WORDS for piece in pieces)


def _bones(word: str) -> str:
    """What is left of a word without vowels and doubled letters; a vowel at its beginning stays."""
    return _TWICE.sub(r"\1", word[:1] + _VOWELS.sub("", word[1:]))
