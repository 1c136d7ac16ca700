"""Between records and rows: fields and columns have the same names, so this is one function each way."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@cache
def _names(kind: type[DataclassInstance]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def values_of(record: DataclassInstance) -> dict[str, Any]:
    """The parameters of an INSERT. (`dataclasses.asdict` would copy every nested value.)"""
    return {name: getattr(record, name) for name in _names(type(record))}
