"""Answers of calls, for the OpenAPI document: an example, the errors of their own, and streams.

`responses=answers(examples.JOB, 404)` on a route: FastAPI knows the model of a success by `response_model`. Errors that
every call has, and the shape of all errors, are added by `api.openapi`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from fastapi.responses import StreamingResponse
from fastapi.sse import EventSourceResponse
from pydantic import BaseModel

Responses = dict[int | str, dict[str, Any]]
JSON_LINES = "application/jsonl"
EVENTS: str = EventSourceResponse.media_type
ERRORS = {
    400: "Invalid input; `data.errors` lists the fields.",
    401: "The key is missing, malformed, unknown or revoked.",
    403: "The key has no access to the collection, or lacks the scope of the call.",
    404: "Unknown or expired resource, or one of another lab.",
    408: "The body did not arrive in time.",
    409: "The request conflicts with the current state.",
    413: "The body is too large.",
    415: "The request has no JSON content type.",
    429: "The rate limit of the key is used up.",
    500: "Internal server error.",
    502: "A judge or a persona failed; nothing was recorded.",
    503: "Not ready or overloaded.",
}
UNNAMED_EVENT: dict[str, Any] = {
    "type": "object",
    "properties": {"data": {"type": "string"}},
    "required": ["data"],
}
"""A server-sent event of which only the data counts."""


class JsonLines(StreamingResponse):
    """A JSON object a line."""

    media_type = JSON_LINES


class Events(StreamingResponse):
    """Server-sent events, for the document; what is sent is an `EventSourceResponse` that ends by its own rules."""

    media_type = EVENTS


def answers(example: Any = None, *errors: int) -> Responses:
    """A success with an example, and errors."""
    described: dict[str, Any] = {} if example is None else {"content": {"application/json": {"example": example}}}
    return {200: described, **_errors(errors)}


def chat_answers(example: Any, *errors: int) -> Responses:
    """A success that is one answer, or a stream of chunks of it."""
    found = answers(example, 403, 404, 502, *errors)
    found[200]["content"][EVENTS] = {"schema": UNNAMED_EVENT}
    return found


def lines(model: type[BaseModel], example: Any, *errors: int) -> Responses:
    """A success whose every line is such an object."""
    return {200: {"content": {JSON_LINES: {"schema": _ref(model), "example": example}}}, **_errors(errors)}


def events(names: Sequence[str], *errors: int, model: type[BaseModel] | None = None, example: Any = None) -> Responses:
    """A success that is a stream of events of these names, with a model as their data, or with text."""
    data: dict[str, Any] = {"type": "string"}
    if model is not None:
        data |= {"contentMediaType": "application/json", "contentSchema": {"$ref": _ref(model)["$ref"]}}
    fields = {"event": {"enum": list(names), "type": "string"}, "data": data}
    described: dict[str, Any] = {"schema": {"type": "object", "properties": fields, "required": list(fields)}}
    if example is not None:
        described["example"] = {"event": names[0], "data": json.dumps(example)}
    return {200: {"content": {EVENTS: described}}, **_errors(errors)}


def _errors(statuses: Sequence[int]) -> Responses:
    return {status: {"description": ERRORS[status]} for status in statuses}


def _ref(model: type[BaseModel]) -> dict[str, str]:
    """The model as `response_model` brings it into the document; the framework says text where it is no JSON."""
    return {"type": "object", "$ref": f"#/components/schemas/{model.__name__}"}
