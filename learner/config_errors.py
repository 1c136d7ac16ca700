"""Words the errors that pydantic finds in a configuration, each as one line that says where and what to do."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from learner.sections import UNSET, can_be_unset
from learner.suggestions import nearest, nearest_key

MOST_TOLD = 4
_OUTSIDE = ("greater_than", "greater_than_equal", "less_than", "less_than_equal")


def told(error: ValidationError, kind: type[BaseModel], where: str, places: Mapping[str, Sequence[str]]) -> str:
    """All that is wrong in a model of this kind, which is at `where` in the file; `places` are the keys of all
    sections."""
    lines = [_told(each, kind, where, places) for each in error.errors(include_url=False)]
    more = len(lines) - MOST_TOLD
    return "; ".join(lines[:MOST_TOLD]) + (f"; and {more} more mistakes" if more > 0 else "")


def _told(error: Any, kind: type[BaseModel], where: str, places: Mapping[str, Sequence[str]]) -> str:
    path = [part for part in (where, *error["loc"]) if part != ""]
    place = _place(path)
    if error["type"] == "extra_forbidden":
        return _unknown(path, place, kind, places)
    if error["type"] == "model_type":
        return f"{place}: must be a section with keys"
    found = _field(kind, error["loc"])
    return f"{place}: {error['msg'] if found is None else _misfit(error, *found)}"


def _misfit(error: Any, kind: type[BaseModel], name: str) -> str:
    """The fault of the value of a key."""
    field = kind.model_fields[name]
    if error["type"] in _OUTSIDE:
        return outside(field)
    if error["type"] == "finite_number":
        return "must be a finite number"
    if error["type"] == "literal_error":
        words = [word for option in _options(field.annotation) for word in typing.get_args(option)]
        return f"must be one of {', '.join(map(repr, words + _unset(kind, name)))}"
    is_inside = error["loc"][-1] != name
    hint = typing.get_args(field.annotation)[-1] if is_inside else field.annotation
    wanted = [_name(option) for option in _options(hint) if option is not types.NoneType]
    quoted = [] if is_inside else [f'"{word}"' for word in _unset(kind, name)]
    return f"must be {' or '.join([*wanted, *quoted])}, not {type(error['input']).__name__}"


def outside(field: FieldInfo) -> str:
    """The message about a number that is outside the range of its field."""
    low, high, is_open = _bounds(field)
    more = field.json_schema_extra
    hint = more.get("hint", "") if isinstance(more, dict) else ""
    if high is not None:
        text = f"must be {'above' if is_open else 'at least'} {low:g} and at most {high:g}"
    elif is_open:
        text = f"must be above {low:g}"
    else:
        text = "must not be negative" if low == 0 else f"must be at least {low:g}"
    return f"{text}{hint}"


def _bounds(field: FieldInfo) -> tuple[float, float | None, bool]:
    """(least, most, whether the least itself is outside)."""
    found = {name: getattr(each, name) for each in field.metadata for name in ("gt", "ge", "le") if hasattr(each, name)}
    return found.get("gt", found.get("ge", 0.0)), found.get("le"), "gt" in found


def _unknown(path: Sequence[Any], place: str, kind: type[BaseModel], places: Mapping[str, Sequence[str]]) -> str:
    name = str(path[-1])
    if len(path) == 1:
        return f"section [{name}]: {nearest(name, places)}"
    section = ".".join(map(str, path[:-1]))
    return f"{place}: {nearest_key(section, name, places) if section in places else nearest(name, kind.model_fields)}"


def _field(kind: type[BaseModel], place: Sequence[Any]) -> tuple[type[BaseModel], str] | None:
    """The section that a place is in, and its key there."""
    for part in place:
        if part not in kind.model_fields:
            return None
        inner = kind.model_fields[part].annotation
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return kind, part
        kind = inner
    return None


def _options(hint: Any) -> tuple[Any, ...]:
    is_union = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
    return typing.get_args(hint) if is_union else (hint,)


def _unset(kind: type[BaseModel], name: str) -> list[str]:
    return [UNSET] if can_be_unset(kind, name) else []


def _name(hint: Any) -> str:
    plain = typing.get_origin(hint) or hint
    return "one of its words" if plain is Literal else str(plain.__name__)


def _place(path: Sequence[Any]) -> str:
    """`section.key`, `section.key[2]`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in path]
    return "".join(parts).removeprefix(".")
