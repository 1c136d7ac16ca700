"""Scopes of keys. Every call of the API declares which of these open it (`api.access`)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Scope(StrEnum):
    """One kind of use."""

    TRAIN = "train"
    """Play episodes."""
    SCORE = "score"
    """Have finished conversations scored, compared and ranked; read what came of it."""
    EXPORT = "export"
    """Read stored conversations in bulk: preferences and other data sets."""
    LABEL = "label"
    """Store human labels and preferences."""
    AUTHOR = "author"
    """Bring rubrics and scenarios of the lab's own, and read them again."""
    OPERATE = "operate"
    """Look after the server: reward models, calibrations, labs, keys, metrics."""


ANY = tuple(Scope)
"""Of a call that every key may make, whatever its scopes."""
NOBODY: tuple[Scope, ...] = ()
"""Of a call that takes no key."""
USUAL = frozenset(Scope) - {Scope.AUTHOR, Scope.OPERATE}
"""What a new key has unless told otherwise: who trains an agent shall not read what it is scored by."""
EVERY = frozenset(Scope)


def in_order(scopes: Iterable[Scope]) -> tuple[Scope, ...]:
    """As they are stored and shown: in the order above, each once."""
    given = frozenset(scopes)
    return tuple(scope for scope in Scope if scope in given)
