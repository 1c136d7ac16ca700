"""Words problems with fields as this API names them: the validating library speaks of its own insides.

Nothing of what the caller sent is in them but its size and its type. Messages of our own validators are kept. Of kinds
of problems that nobody foresaw only the place is told: the library's words for some of them repeat the input.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TEXTS: Mapping[str, str] = {
    "missing": "Is required.",
    "extra_forbidden": "Is not a known field.",
    "string_type": "Must be text.",
    "string_unicode": "Must be valid Unicode text.",
    "list_type": "Must be a list.",
    "dict_type": "Must be an object.",
    "model_type": "Must be an object.",
    "model_attributes_type": "Must be an object.",
    "bool_type": "Must be true or false.",
    "bool_parsing": "Must be true or false.",
    "int_type": "Must be a whole number.",
    "int_parsing": "Must be a whole number.",
    "int_parsing_size": "Must be a smaller whole number.",
    "int_from_float": "Must be a whole number.",
    "float_type": "Must be a number.",
    "float_parsing": "Must be a number.",
    "finite_number": "Must be a finite number.",
    "literal_error": "Must be {expected}.",
    "enum": "Must be {expected}.",
    "string_pattern_mismatch": "Must match {pattern}.",
    "greater_than": "Must be greater than {gt:g}.",
    "greater_than_equal": "Must be at least {ge:g}.",
    "less_than": "Must be less than {lt:g}.",
    "less_than_equal": "Must be at most {le:g}.",
    "json_invalid": "Is not valid JSON: {error}.",
}
_SIZES: Mapping[str, tuple[str, str, str]] = {
    "too_short": ("at least", "min_length", "entry/entries"),
    "too_long": ("at most", "max_length", "entry/entries"),
    "string_too_short": ("at least", "min_length", "character/characters"),
    "string_too_long": ("at most", "max_length", "character/characters"),
}
_TYPES: Mapping[type, str] = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "an object",
    type(None): "null",
}
"""Of JSON values."""
_WRONG_TYPE = frozenset(("string_type", "list_type", "dict_type"))

_UNFORESEEN = "Is not valid."


def in_words(detail: Mapping[str, Any]) -> str:
    """One sentence for an entry of a validation error's `errors()`, its context included."""
    kind, context = detail["type"], detail.get("ctx") or {}
    if kind == "value_error":
        own = str(context.get("error", ""))
        return f"{own[:1].upper()}{own[1:].rstrip('.')}." if own else _UNFORESEEN
    if kind == "extra_forbidden" and tuple(detail.get("loc", ()))[:1] == ("query",):
        return "Is not a known parameter."
    try:
        if kind in _SIZES:
            bound, name, words = _SIZES[kind]
            one, many = words.split("/")
            limit = f"Must have {bound} {context[name]:,} {one if context[name] == 1 else many}"
            return f"{limit}{_size_of(detail.get('input'))}."
        text = _TEXTS[kind].format(**context)
        sent = _TYPES.get(type(detail.get("input"))) if kind in _WRONG_TYPE and "input" in detail else None
        return text if sent is None else f"{text.removesuffix('.')}, not {sent}."
    except (KeyError, ValueError, TypeError):
        return _UNFORESEEN


def _size_of(sent: object) -> str:
    """The amount that was sent, unless it was nothing."""
    return f", this has {len(sent):,}" if isinstance(sent, str | list) and sent else ""
