"""Which variant of a scenario is played with a seed, and which one a conversation is about.

A seed takes the variant that a hash of both puts first, so a variant that is added later takes some seeds from each of
the others and moves no seed between them. A conversation is about the variant that opens with its first line; no two
open alike. So the variant, as everything that a reward depends on, follows from the transcript.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Generic, Protocol, TypeVar

from personas.case.compiled import CompiledCase
from personas.text.sentences import sentences
from personas.text.wording import normal


class Variety(Protocol):
    """What tells a variant from another."""

    @property
    def variant(self) -> str:
        """Its id."""

    @property
    def split(self) -> str | None:
        """Whether it is for training or for evaluation."""

    @property
    def case(self) -> CompiledCase:
        """What its persona knows."""


T = TypeVar("T", bound=Variety)


class Kin(Generic[T]):
    """The variants of one scenario, the scenario as its own file tells it first."""

    def __init__(self, variants: Sequence[T]) -> None:
        self.variants = tuple(variants)
        self._opening = {normal(line): each for each in reversed(self.variants) for line in each.case.openings}

    @cached_property
    def _own(self) -> dict[str, frozenset[str]]:
        """What each variant alone may say; hardly any conversation needs it, and a start waits for it."""
        return {each.variant: _lines(each.case) for each in self.variants}

    def drawn(self, seed: int, split: str | None = None) -> T:
        """The variant of a seed, among those of a split; among all where the scenario has none for that."""
        fitting = [each for each in self.variants if split is None or each.split == split]
        return max(fitting or self.variants, key=lambda each: _rank(seed, each.variant))

    def heard(self, opening: str, lines: Iterable[str]) -> T:
        """The variant that a conversation is about.

        Args:
            opening: the persona's first line.
            lines: what it said later. They count where no variant opens like that: a client may have left it out.
        """
        if len(self.variants) == 1:
            return self.variants[0]
        found = self._opening.get(normal(opening))
        return self._likeliest((opening, *lines)) if found is None else found

    def _likeliest(self, lines: Iterable[str]) -> T:
        """The one whose persona says most of these sentences; of several, the first."""
        said = [normal(sentence) for line in lines for sentence in sentences(line)]
        count = Counter({name: sum(each in own for each in said) for name, own in self._own.items()})
        return max(self.variants, key=lambda each: count[each.variant])


def _rank(seed: int, variant: str) -> bytes:
    return hashlib.blake2b(f"{seed}|variant|{variant}".encode(), digest_size=16).digest()


def _lines(case: CompiledCase) -> frozenset[str]:
    """The sentences, in normal form, that a case has words of its own for."""
    told = (line for topic in case.topics for line in (*topic.answers, topic.again or "", topic.partial or ""))
    replies = (line for each in case.commitments for line in (*each.reply, *each.reply_early))
    return frozenset(normal(s) for line in (*case.openings, *told, *replies) for s in sentences(line))
