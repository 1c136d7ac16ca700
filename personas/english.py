"""English words: which there are, and which were run together. The dictionary and the search in it are symspellpy's."""

from __future__ import annotations

import hashlib
from functools import cache, lru_cache
from importlib.resources import files
from string import ascii_lowercase

from symspellpy import SymSpell

from personas.wording import FUNCTION_WORDS, words_of

_DICTIONARY = files("symspellpy") / "frequency_dictionary_en_82_765.txt"
_RARE = 20_000
"""What was counted less often in the corpus of the dictionary (a trillion words) is often a mistake itself."""
_OFTEN = 100_000_000
"""As an ordinary word is counted."""
_ENDINGS = words_of("s t re ve ll d m")
"""Of words with an apostrophe."""
_LONGEST = 400


@cache
def _words() -> frozenset[str]:
    lines = _DICTIONARY.read_text(encoding="utf-8-sig").splitlines()
    counted = (line.split() for line in lines)
    return FUNCTION_WORDS | {word for word, count in counted if int(count) >= _RARE}


def warm() -> None:
    """Read the dictionary, which takes about a second, before anybody waits for it."""
    parted("warm")


def digest() -> str:
    """Of the dictionary: what it holds decides what counts as misspelt (64 hexadecimal digits)."""
    return hashlib.sha256(_DICTIONARY.read_bytes()).hexdigest()


@cache
def _segmenter() -> SymSpell:
    """The same words with how often each is written, and contractions without their apostrophe."""
    found = SymSpell(max_dictionary_edit_distance=0, prefix_length=7, count_threshold=_RARE)
    found.load_dictionary(str(_DICTIONARY), 0, 1, encoding="utf-8")
    for word in FUNCTION_WORDS:
        if "'" in word and not is_english(bare := word.replace("'", "")):
            found.create_dictionary_entry(bare, _OFTEN)
    return found


def is_english(word: str) -> bool:
    """Whether a word in lower case is known; one with an apostrophe by what stands before it."""
    stem, _, ending = word.partition("'")
    return word in _words() or (stem in _words() and ending in _ENDINGS)


def is_nearly_english(word: str) -> bool:
    """Whether a word is one letter off a known one: a letter more, less, changed, or two swapped."""
    halves = [(word[:i], word[i:]) for i in range(len(word) + 1)]
    near = (
        *(left + right[1:] for left, right in halves if right),
        *(left + right[1] + right[0] + right[2:] for left, right in halves if len(right) > 1),
        *(left + letter + right[1:] for left, right in halves if right for letter in ascii_lowercase),
        *(left + letter + right for left, right in halves for letter in ascii_lowercase),
    )
    known = _words()
    return any(each in known for each in near)


@lru_cache(maxsize=4096)
def parted(letters: str) -> tuple[str, ...]:
    """The most probable words of a run of letters in lower case, of which the first few hundred are read."""
    return tuple(_segmenter().word_segmentation(letters[:_LONGEST], max_edit_distance=0).segmented_string.split())
