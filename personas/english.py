"""English words: which there are, and which were run together. The dictionary and the search in it are symspellpy's."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from math import log
from string import ascii_lowercase

from symspellpy import SymSpell

from personas.wording import FUNCTION_WORDS, words_of

_DICTIONARY = files("symspellpy") / "frequency_dictionary_en_82_765.txt"
_PAIRS = files("symspellpy") / "frequency_bigramdictionary_en_243_342.txt"
_UNSEEN = 20_000
"""What every pair is taken to be counted more often than it was, so that a rare one says little."""
_RARE = 20_000
"""What was counted less often in the corpus of the dictionary (a trillion words) is often a mistake itself."""
_OFTEN = 100_000_000
"""As an ordinary word is counted."""
_ENDINGS = words_of("s t re ve ll d m")
"""Of words with an apostrophe."""
_LONGEST = 400


@cache
def _counts() -> Mapping[str, int]:
    """Words with how often each was counted."""
    lines = _DICTIONARY.read_text(encoding="utf-8-sig").splitlines()
    counted = ((word, int(count)) for word, count in map(str.split, lines))
    return dict.fromkeys(FUNCTION_WORDS, _OFTEN) | {word: count for word, count in counted if count >= _RARE}


@cache
def _pairs() -> Mapping[tuple[str, str], int]:
    """Two words that follow each other, with how often they were counted."""
    lines = _PAIRS.read_text(encoding="utf-8-sig").splitlines()
    return {(first, second): int(count) for first, second, count in map(str.split, lines)}


def warm() -> None:
    """Read the dictionary and the pairs, which takes about a second, before anybody waits for it."""
    parted("warm")
    order(("warm", "up"))


def digest() -> str:
    """Of the dictionary and the pairs: they decide what counts as misspelt or disordered (64 hexadecimal digits)."""
    return hashlib.sha256(_DICTIONARY.read_bytes() + _PAIRS.read_bytes()).hexdigest()


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
    return word in _counts() or (stem in _counts() and ending in _ENDINGS)


def how_common(word: str) -> int:
    """How often a word in lower case was counted in the corpus of the dictionary; 0 where it is none."""
    return _counts().get(word.partition("'")[0], 0) if is_english(word) else 0


def is_nearly_english(word: str) -> bool:
    """Whether a word is one letter off a known one: a letter more, less, changed, or two swapped."""
    halves = [(word[:i], word[i:]) for i in range(len(word) + 1)]
    near = (
        *(left + right[1:] for left, right in halves if right),
        *(left + right[1] + right[0] + right[2:] for left, right in halves if len(right) > 1),
        *(left + letter + right[1:] for left, right in halves if right for letter in ascii_lowercase),
        *(left + letter + right for left, right in halves for letter in ascii_lowercase),
    )
    known = _counts()
    return any(each in known for each in near)


@lru_cache(maxsize=4096)
def parted(letters: str) -> tuple[str, ...]:
    """The most probable words of a run of letters in lower case, of which the first few hundred are read."""
    return tuple(_segmenter().word_segmentation(letters[:_LONGEST], max_edit_distance=0).segmented_string.split())


def order(words: Sequence[str]) -> float:
    """How much more usual the words (lower case) are in their order than in the reverse one; below 0 less.

    Mean over adjacent pairs of the log of how often they were counted over how often they were the other way round;
    0 for fewer than two words.
    """
    counts = _pairs()
    pairs = tuple(pairwise(words))
    ratios = ((counts.get((a, b), 0) + _UNSEEN) / (counts.get((b, a), 0) + _UNSEEN) for a, b in pairs)
    return sum(map(log, ratios)) / len(pairs) if pairs else 0.0
