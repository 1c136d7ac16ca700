"""Broken sentences, made from whole ones, and the small slips of honest writers, which are not broken.

A policy that learns from rewards breaks its language in a few ways: it joins the beginning of one sentence to the end
of another, stops in the middle, or strings together words that often follow each other. Each is made here from
sentences of one source (a scenario, a set of dialogues), whose words a policy would mix.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

LEAST_WORDS = 2
"""Before and after the place where a sentence breaks."""
SAMPLED_WORDS = 30
FREQUENT, SELDOM_LAST = 150, 0.01
"""A word that occurs so often, and of all its places so seldom stands last, leaves a sentence dangling."""
TRIES = 20
_WAYS = ("splice", "patchwork", "insertion", "dangling", "shuffle", "chain", "glue")
_ODDS = (4, 2, 2, 2, 1, 4, 1)
_SLIPPING = 0.5
"""The share of whole sentences that are written with a slip."""
_LONG_WORD = 4


@dataclass(frozen=True, slots=True)
class CorruptedSentence:
    """A broken sentence."""

    text: str
    way: str
    seams: tuple[int, ...]
    """The words at which it breaks, by number; none where it breaks everywhere."""


class Corruptor:
    """Breaks sentences; deterministic for a state of `draw`."""

    def __init__(self, sources: Mapping[str, Sequence[str]], draw: random.Random) -> None:
        """Break sentences of these sources.

        Args:
            sources: whole sentences by where they come from.
            draw: all chance.
        """
        self._sources = {name: [text.split() for text in texts] for name, texts in sources.items()}
        self._whole = {text for texts in sources.values() for text in texts}
        self._draw = draw
        self._followers = {name: _followers(texts) for name, texts in self._sources.items()}
        self._dangling = _dangling(self._sources.values())

    def broken(self, source: str, sentence: str) -> CorruptedSentence | None:
        """A broken sentence that begins as this one of the source, or None if none could be made of it."""
        words = sentence.split()
        for _ in range(TRIES):
            way = self._draw.choices(_WAYS, _ODDS)[0]
            made = self._made(way, source, words)
            if made is not None and made.text not in self._whole:
                return made
        return None

    def slipped(self, sentence: str) -> str:
        """The sentence as somebody in a hurry may write it: in small letters, without its end, with one letter or one
        word of grammar wrong; half of the time as it is."""
        draw = self._draw
        if draw.random() >= _SLIPPING:
            return sentence
        words = sentence.split()
        match draw.randrange(5):
            case 0:
                return sentence.lower()
            case 1:
                return sentence.rstrip(".?!")
            case 2:
                return sentence.lower().rstrip(".?!").replace("'", "")
            case 3:
                place = draw.randrange(len(words))
                words[place] = self._misspelt(words[place])
            case _:
                grammar = [place for place, word in enumerate(words) if word.lower() in self._dangling]
                if grammar and len(words) > _LONG_WORD:
                    words.pop(draw.choice(grammar))
        return " ".join(words)

    def _misspelt(self, word: str) -> str:
        if len(word) < _LONG_WORD:
            return word
        at = self._draw.randrange(1, len(word) - 1)
        before, letter, behind = word[:at], word[at], word[at + 1 :]
        return self._draw.choice(
            (before + behind, before + behind[0] + letter + behind[1:], before + letter * 2 + behind)
        )

    def _made(self, way: str, source: str, words: list[str]) -> CorruptedSentence | None:
        if way == "chain":
            return self._chained(source)
        if len(words) <= 2 * LEAST_WORDS:
            return None
        one, other = self._draw.choice(self._sources[source]), self._draw.choice(self._sources[source])
        ways: dict[str, Callable[[], CorruptedSentence | None]] = {
            "splice": lambda: self._spliced(words, one),
            "glue": lambda: self._glued(words, one),
            "patchwork": lambda: self._patched(words, one, other),
            "insertion": lambda: self._inserted(words, one),
            "dangling": lambda: self._cut(words),
            "shuffle": lambda: self._shuffled(words),
        }
        return ways[way]()

    def _spliced(self, words: list[str], other: list[str]) -> CorruptedSentence | None:
        end, start = self._joint(words, other)
        return CorruptedSentence(" ".join([*words[:end], *other[start:]]), "splice", (end - 1, end)) if start else None

    def _glued(self, words: list[str], other: list[str]) -> CorruptedSentence | None:
        end, start = self._joint(words, other)
        if not start:
            return None
        glued = words[end - 1].rstrip(".,?!") + other[start]
        return CorruptedSentence(" ".join([*words[: end - 1], glued, *other[start + 1 :]]), "glue", (end - 1,))

    def _joint(self, words: list[str], other: list[str]) -> tuple[int, int]:
        """The places where the one ends and the other goes on; 0 and 0 where they would fit."""
        if len(other) <= LEAST_WORDS:
            return 0, 0
        end, start = self._draw.randint(LEAST_WORDS, len(words) - 1), self._draw.randint(1, len(other) - 1)
        fits = words[end] == other[start] or words[end - 1] == other[start - 1]
        return (0, 0) if fits else (end, start)

    def _patched(self, words: list[str], middle: list[str], other: list[str]) -> CorruptedSentence | None:
        if min(len(middle), len(other)) <= LEAST_WORDS:
            return None
        end, start = self._draw.randint(LEAST_WORDS, len(words) - 1), self._draw.randint(1, len(middle) - 2)
        piece = middle[start : start + self._draw.randint(1, 4)]
        rest = other[self._draw.randint(1, len(other) - 1) :]
        second = end + len(piece)
        return CorruptedSentence(
            " ".join([*words[:end], *piece, *rest]), "patchwork", (end - 1, end, second - 1, second)
        )

    def _inserted(self, words: list[str], other: list[str]) -> CorruptedSentence | None:
        if len(other) < LEAST_WORDS:
            return None
        at, start = self._draw.randint(1, len(words) - 1), self._draw.randrange(len(other))
        piece = [word.lower() for word in other[start : start + self._draw.randint(1, 4)]]
        return CorruptedSentence(
            " ".join([*words[:at], *piece, *words[at:]]), "insertion", tuple(range(at - 1, at + len(piece) + 1))
        )

    def _cut(self, words: list[str]) -> CorruptedSentence | None:
        ends = [end for end in range(3, len(words)) if words[end - 1].lower() in self._dangling]
        if not ends:
            return None
        end = self._draw.choice(ends)
        return CorruptedSentence(" ".join(words[:end]) + self._draw.choice(("", "", "?", ".")), "dangling", (end - 1,))

    def _shuffled(self, words: list[str]) -> CorruptedSentence | None:
        size = min(len(words), self._draw.randint(4, 6))
        at = self._draw.randint(0, len(words) - size)
        part = words[at : at + size]
        mixed = self._draw.sample(part, size)
        if sum(a != b for a, b in zip(part, mixed, strict=True)) <= LEAST_WORDS:
            return None
        return CorruptedSentence(
            " ".join([*words[:at], *mixed, *words[at + size :]]), "shuffle", tuple(range(at, at + size))
        )

    def _chained(self, source: str) -> CorruptedSentence | None:
        chain = self._chain(source)
        return CorruptedSentence(" ".join(chain), "chain", ()) if len(chain) > 2 * LEAST_WORDS else None

    def _chain(self, source: str) -> list[str]:
        """Words that follow each other somewhere in the source: a Markov chain of order 1, sometimes of order 2."""
        followers = self._followers[source]
        chain = [""]
        while len(chain) <= SAMPLED_WORDS:
            pair = " ".join(chain[-2:])
            known = followers.get(pair) if len(chain) > 1 and self._draw.random() < 0.5 else None
            word = self._draw.choice(known or followers[chain[-1]])
            if not word:
                break
            chain.append(word)
        return chain[1:]


def _followers(texts: Sequence[Sequence[str]]) -> dict[str, list[str]]:
    """By a word, and by two, the words that follow; "" is the beginning and the end."""
    followers: defaultdict[str, list[str]] = defaultdict(list)
    for words in texts:
        around = ["", *words, ""]
        for first, second in itertools.pairwise(around):
            followers[first].append(second)
        for first, second, third in zip(around[1:], around[2:], around[3:], strict=False):
            followers[f"{first} {second}"].append(third)
    return dict(followers)


def _dangling(sources: Iterable[Sequence[Sequence[str]]]) -> frozenset[str]:
    last: Counter[str] = Counter()
    anywhere: Counter[str] = Counter()
    for texts in sources:
        for words in texts:
            lowered = [word.lower() for word in words]
            anywhere.update(lowered)
            last[lowered[-1].rstrip(".?!")] += 1
    return frozenset(
        word
        for word, count in anywhere.items()
        if count > FREQUENT and word.isalpha() and last[word] <= SELDOM_LAST * count
    )
