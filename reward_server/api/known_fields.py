"""Finds the field that a caller may have meant by an unknown one: one spelt alike, or one a level deeper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel

LIKE = 0.75
"""So alike is a name that was probably meant (`difflib`'s ratio)."""
LONGEST = 64


def meant(model: type[BaseModel], loc: Sequence[str | int]) -> str | None:
    """The field that was probably meant by the unknown one at `loc`, by its path from there; None if none is likely."""
    name = loc[-1] if loc else None
    if not isinstance(name, str) or len(name) > LONGEST:
        return None
    places = [model]
    for part in loc[:-1]:
        places = [inner for place in places for inner in (_inner(place, part) if isinstance(part, str) else [place])]
    for place in places:
        for field in _names(place):
            if any(name in _names(inner) for inner in _inner(place, field)):
                return f"{field}.{name}"
        if alike := get_close_matches(name, list(_names(place)), n=1, cutoff=LIKE):
            return alike[0]
    return None


def _names(model: type[BaseModel]) -> Iterator[str]:
    """As a body spells them."""
    return (field.alias or name for name, field in model.model_fields.items())


def _inner(model: type[BaseModel], name: str) -> list[type[BaseModel]]:
    """The models that a field of a model holds."""
    fields = (field for own, field in model.model_fields.items() if name in (own, field.alias))
    return [each for field in fields for each in _models([field.annotation])]


def _models(annotations: Iterable[Any]) -> Iterator[type[BaseModel]]:
    """The models in annotations, whatever unions and lists they are in."""
    for annotation in annotations:
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield annotation
        else:
            yield from _models(get_args(annotation))
