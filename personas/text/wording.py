"""Plain-text comparison: normal forms, content words, word grams, keyword hits.

Everything here is pure and independent of locale, hash seed and library versions, because rewards are
computed from it. No meaning is compared here; that is the `Matcher`'s job.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from personas.text.memory import remembered


def any_of(*alternatives: str) -> str:
    """A regular expression that matches any of the given ones."""
    return f"(?:{'|'.join(alternatives)})"


def words_of(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


_TOKEN = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_QUOTES = str.maketrans(
    {
        "\u00b4": "'",
        "\u2032": "'",
        "\u2019": "'",
        "\u2018": "'",
        "\u02bc": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u00a0": " ",
    }
)

FUNCTION_WORDS = words_of(
    """a about after again all also although am an and another any anybody anyone anything are aren't around as at be
    because been before being both but by can can't cannot could couldn't did didn't do does doesn't doing don't down
    during each either else ever every everything far few for from get gets getting give go going got had hadn't has
    hasn't have haven't having he he's her here hers herself him his how how's however i i'd i'll i'm i've if in into
    is isn't it it's its itself just keep know last least less let let's like long lot made make many may maybe me
    might mine more most much must my myself never no nobody none nor not nothing now of off often ok okay on once one
    only onto or other our ours out over own per please quite rather really right said same say see seem shall she
    should shouldn't since so some somebody someone something somewhere soon still such sure tell than thank thanks
    that that's the their theirs them then there there's these they they'd they'll they're they've thing things think
    this those though through till to today together too try under until up upon us use usually very want was wasn't
    way we we'd we'll we're we've well went were weren't what what's when when's where where's whether which while who
    who's whole whom whose why why's will with within without won't would wouldn't yes yet you you'd you'll you're
    you've your yours yourself"""
)

_SUFFIXES = ("ations", "ation", "ings", "ing", "edly", "ies", "ied", "ers", "ed", "es", "er", "ly", "s", "e", "y")


def plain(text: str) -> str:
    """Curly quotes and hard spaces made plain; nothing else changes."""
    return text if text.isascii() else text.translate(_QUOTES)


def tokens(text: str) -> list[str]:
    """Lower-case words, apostrophes kept inside a word."""
    return _TOKEN.findall(plain(text).lower())


def normal(text: str) -> str:
    """Words separated and surrounded by single spaces, so that `in` compares whole words."""
    return f" {' '.join(tokens(text)).replace(chr(39), '')} "


def content_words(text: str) -> list[str]:
    """The words that carry meaning, in order."""
    return [word for word in tokens(text) if word not in FUNCTION_WORDS]


def grams(text: str, size: int = 4) -> frozenset[str]:
    """Runs of `size` content words."""
    words = content_words(text)
    return frozenset(" ".join(words[i : i + size]) for i in range(len(words) - size + 1))


@lru_cache(maxsize=32_768)
def stem(word: str) -> str:
    """A crude stem, only ever compared with other crude stems."""
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return word[: -len(suffix)]
    return word


@remembered(8192)
def stems(text: str) -> tuple[str, ...]:
    """The stems of all words, in order."""
    return tuple(stem(word) for word in tokens(text))


@remembered(8192)
def content_stems(text: str) -> frozenset[str]:
    """The stems of the words that carry meaning."""
    return frozenset(stem(word) for word in content_words(text))


def stem_line(words: Iterable[str]) -> str:
    """Stems in the padded form in which a keyword can be searched with `in`."""
    return f" {' '.join(words)} "


def overlap(left: str, right: str) -> float:
    """Shared content words as a share of the smaller set; 0 when either has none."""
    a, b = set(content_words(left)), set(content_words(right))
    return len(a & b) / min(len(a), len(b)) if a and b else 0.0
