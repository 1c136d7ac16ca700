"""Reads a request body within limits and turns it into a checked value: bytes in, model out.

An endpoint declares its body with `JsonBody`; `api.router` has it read here before FastAPI goes on. NUL is
refused here; lone surrogates and bottomless nesting by the JSON parser; numbers out of range by the
wire types. NaN and infinities are no JSON, also where a wire type would not look at them.

Building values costs far more than receiving bytes, so bodies are bounded in values as well as in bytes, before they
are parsed; large ones are parsed in a thread, and no more problems are looked for than are told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import Request
from fastapi.params import Body
from pydantic import BaseModel, GetPydanticSchema, ValidationError
from pydantic_core import core_schema, from_json

from reward_server.api.errors import invalid
from reward_server.errors import BodyTooLarge, BodyTooSlow, FieldProblem, InvalidRequest
from reward_server.limits.bytes_in_flight import Reservation

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
_NUL_ESCAPE = b"\\u0000"
_SUSPICIOUS = (_NUL_ESCAPE, b"NaN", b"Infinity")
"""What a body has to hold to hold what models let pass in fields that they ignore. Text may hold it, too."""
_SEPARATORS = (b",", b"[", b"{")
_QUOTES_OF_A_SEPARATOR = 4
"""At most: `{"key": "text"`."""
ROOM = "room"
"""In the state of a request: its lab's room for bodies, a `Reservation`; without it there is no bound of that kind."""
DEADLINE_S = 10.0
"""Time a client has to send a body, or the next part of a file."""
LARGE_BYTES = 64_000
"""From here on a body is worth a thread."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The most that a route takes: bytes, and values, as separators outside of text."""

    megabytes: float
    values: int


FORM = Limit(0.25, 5_000)
CONVERSATION = Limit(4.0, 40_000)
CONVERSATIONS = Limit(8.0, 200_000)


class JsonBody(Body):  # type: ignore[misc]  # as the framework's own, which are of a class that is marked final
    """Declares a body in the signature of an endpoint: how large it may be, an example, and how it is checked."""

    def __init__(
        self, limit: Limit = FORM, *, example: object = None, read: Callable[[bytes], object] | None = None
    ) -> None:
        """`read`: what makes the value of the bytes, where that is more than the model's own check."""
        super().__init__()
        self.limit = limit
        self.read = read
        if example is not None:
            # Not by the argument of that name, which FastAPI warns of; `examples` would go into the model's schema.
            self.example = example


def sent_as(model: type[BaseModel]) -> GetPydanticSchema:
    """Annotates what `JsonBody.read` makes of a body: it is what it is, and the document shows the model."""
    return GetPydanticSchema(
        lambda _source, handler: core_schema.no_info_wrap_validator_function(
            lambda value, _check: value, handler.generate_schema(model)
        )
    )


async def read_body(request: Request, *, limit_bytes: int) -> bytes:
    """The whole body, refused as soon as it is known to be too large, too slow or of another kind."""
    _require_plain(request)
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared[:20]) > limit_bytes:
        raise BodyTooLarge
    room: Reservation | None = request.scope.get("state", {}).get(ROOM)
    if room is not None:
        # Nobody knows how long a body will be that comes in chunks.
        await room.take(int(declared[:20]) if declared.isdigit() else limit_bytes)
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(DEADLINE_S):
            async for chunk in request.stream():
                size += len(chunk)
                if size > limit_bytes:
                    raise BodyTooLarge
                chunks.append(chunk)
    except TimeoutError:
        raise BodyTooSlow from None
    if room is not None:
        room.keep(size)
    return b"".join(chunks)


async def off_the_loop(work: Callable[[bytes], T], body: bytes, limit: Limit) -> T:
    """Run `work` on a body that holds no more values than it may; `InvalidRequest` for one that does."""

    def checked() -> T:
        _require_few_values(body, limit.values)
        return work(body)

    return checked() if len(body) < LARGE_BYTES else await asyncio.to_thread(checked)


def parse(model: type[M], body: bytes) -> M:
    """The body as that model; `InvalidRequest` names the places that do not fit."""
    if any(sign in body for sign in _SUSPICIOUS):
        read_json(body)
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise invalid(error, model) from None


def validate(model: type[M], value: object) -> M:
    """The same for a part of a body that was read by `read_json`."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise invalid(error, model) from None


def read_json(body: bytes) -> Any:
    """The body as plain JSON values, for what has to be validated in parts."""
    try:
        value = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        # The parser's message names what it expected and where, not what it found.
        raise InvalidRequest(
            "The body is not valid JSON.", [FieldProblem((), f"Is not valid JSON: {error}.")]
        ) from None
    # The escape is the only way to write NUL, and hardly any body has it: the walk is rare.
    if _NUL_ESCAPE in body:
        _refuse_nul(value)
    return value


def _refuse_nul(value: object) -> None:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            pending.extend(item.keys())
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
        elif isinstance(item, str) and "\x00" in item:
            raise InvalidRequest("Text must not contain NUL characters.")


def _require_plain(request: Request) -> None:
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise InvalidRequest("Compressed bodies are not accepted.")


def _require_few_values(body: bytes, most: int) -> None:
    if sum(map(body.count, _SEPARATORS)) <= most:
        return
    # Prose has commas, too: only now is it worth telling text from the rest. A body may be made to be slow to read, so
    # every step is linear in its size. Backslashes are in text alone, and text that nothing ends goes on to the end.
    quotes_only = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    if quotes_only.count(b'"') <= most * _QUOTES_OF_A_SEPARATOR:
        outside_of_text = b"".join(quotes_only.split(b'"')[::2])
        if sum(map(outside_of_text.count, _SEPARATORS)) <= most:
            return
    raise InvalidRequest("The body contains too many values.")
