"""Checks the regular expressions of a tool's JSON Schema: none may run for long.

Python's engine backtracks, agents write the text that is searched, and a search has no deadline. So
a pattern is refused by its shape: repeats inside repeats, several wide unbounded gaps, back-references.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any

MAX_PATTERN_CHARACTERS = 400
_LONG_REPEAT = 100
_SHORT_REPEAT = 10
_MAX_WIDE_GAPS = 1
_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT)


def pattern_problem(pattern: str) -> str | None:
    """The fault of `pattern` and how to mend it; None when it may be used."""
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        return f"the pattern is longer than {MAX_PATTERN_CHARACTERS} characters: split it into several"
    try:
        tree = sre_parser.parse(pattern, re.IGNORECASE)
        if re.search(pattern, "", re.IGNORECASE):
            return "the pattern matches empty text, so it would always be found: make a part of it compulsory"
    except (re.error, OverflowError, RecursionError) as error:
        return f"the pattern does not compile ({getattr(error, 'msg', 'too complex')}): mend it"
    return _slow(tree)


def _slow(tree: Iterable[tuple[Any, Any]]) -> str | None:
    """The reason why a parsed pattern could run for long."""
    if any(op in (sre.GROUPREF, sre.GROUPREF_EXISTS) for op, _ in _walk(tree)):
        return "back-references are not allowed: write the alternatives out"
    if _nested(tree, inside=False):
        return "a choice or repeat inside a repeat can take for ever: use a bounded gap such as `.{0,40}`, or `{0,3}`"
    if sum(_is_wide_gap(op, argument) for op, argument in _walk(tree)) > _MAX_WIDE_GAPS:
        return "more than one unbounded gap (`.*`) is slow on long text: use bounded gaps such as `.{0,40}`"
    return None


def _parts(op: Any, argument: Any) -> Iterator[Iterable[tuple[Any, Any]]]:
    """The sub-patterns of one node."""
    if op in (*_REPEATS, sre.POSSESSIVE_REPEAT):
        yield argument[2]
    elif op is sre.SUBPATTERN:
        yield argument[3]
    elif op is sre.BRANCH:
        yield from argument[1]
    elif op in (sre.ASSERT, sre.ASSERT_NOT):
        yield argument[1]
    elif op is sre.ATOMIC_GROUP:
        yield argument


def _walk(tree: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    for op, argument in tree:
        yield op, argument
        for part in _parts(op, argument):
            yield from _walk(part)


def _nested(tree: Iterable[tuple[Any, Any]], inside: bool) -> bool:
    """True if a long repeat stands inside a repeat, or a choice inside a long repeat."""
    for op, argument in tree:
        repeats = op in _REPEATS and argument[1] > 1
        if repeats and inside and argument[1] >= _LONG_REPEAT:
            return True
        if repeats and argument[1] >= _SHORT_REPEAT and any(_varies(inner) for inner, _ in _walk(argument[2])):
            return True
        if any(_nested(part, inside or repeats) for part in _parts(op, argument)):
            return True
    return False


def _varies(op: Any) -> bool:
    return op in (*_REPEATS, sre.BRANCH)


def _is_wide_gap(op: Any, argument: Any) -> bool:
    if op not in _REPEATS or argument[1] < _LONG_REPEAT:
        return False
    return any(inner in (sre.ANY, sre.NOT_LITERAL) or _negated(inner, value) for inner, value in argument[2])


def _negated(op: Any, argument: Any) -> bool:
    return op is sre.IN and bool(argument) and argument[0][0] is sre.NEGATE
