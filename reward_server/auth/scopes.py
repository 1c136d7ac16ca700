"""What a key may be used for. Every call of the API declares which of these open it (`api.operation`)."""

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
    OPERATE = "operate"
    """Look after the server: reward models, calibrations, labs, keys, metrics."""


ANY = tuple(Scope)
"""Of a call that every key may make, whatever its scopes."""
NOBODY: tuple[Scope, ...] = ()
"""Of a call that takes no key."""
USUAL = frozenset(Scope) - {Scope.OPERATE}
"""What a new key has unless told otherwise."""
EVERY = frozenset(Scope)


def in_order(scopes: Iterable[Scope]) -> tuple[Scope, ...]:
    """As they are stored and shown: in the order above, each once."""
    given = frozenset(scopes)
    return tuple(scope for scope in Scope if scope in given)
