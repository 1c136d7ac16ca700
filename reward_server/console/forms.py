"""Reads forms: fields of `application/x-www-form-urlencoded`, within limits, without NUL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl

from fastapi import Request

from reward_server.api.body import read_body
from reward_server.errors import FieldProblem, InvalidRequest

MEDIA = "application/x-www-form-urlencoded"
MAX_BYTES = 2_000_000
MAX_FIELDS = 500


class Form:
    """The fields of a form. A field that is missing is empty."""

    def __init__(self, fields: Mapping[str, Sequence[str]] | None = None) -> None:
        self._fields = dict(fields or {})

    def text(self, name: str) -> str:
        """The first value of a field."""
        return next(iter(self._fields.get(name, ())), "")

    def line(self, name: str) -> str:
        """The same without white space around it."""
        return self.text(name).strip()

    def all(self, name: str) -> list[str]:
        """All values of a field."""
        return list(self._fields.get(name, ()))

    def whole(self, name: str) -> int | None:
        """A whole number; None where nothing was entered.

        Raises:
            InvalidRequest: it is another thing.
        """
        given = self.line(name)
        if not given:
            return None
        try:
            return int(given)
        except ValueError:
            raise InvalidRequest(errors=[FieldProblem((name,), "Must be a whole number.")]) from None


async def form_of(request: Request, *, deadline_s: float) -> Form:
    """The form that a request brings.

    Raises:
        InvalidRequest: it is no form, has too many fields, or holds NUL.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await read_body(request, limit_bytes=MAX_BYTES, deadline_s=deadline_s)
    if body and kind != MEDIA:
        raise InvalidRequest("This page takes forms.")
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict")
    except ValueError:
        raise InvalidRequest("The form cannot be read.") from None
    fields: dict[str, list[str]] = {}
    for name, value in pairs:
        if "\x00" in value:
            raise InvalidRequest("Text must not contain NUL characters.")
        fields.setdefault(name, []).append(value)
    return Form(fields)
