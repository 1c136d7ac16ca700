"""Builds the OpenAPI 3.1 document from the routes and the wire types.

`python -m reward_server.server.openapi_document > docs/openapi.json` writes it to a file.

It is FastAPI's document of the routes. Added is what FastAPI cannot know: the errors that every call has in common,
their one shape and the headers of every response; that one of several scopes will do; that there is no 422, as this
server answers 400; and that a response holds no null for an absent field.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import iter_route_contexts

from reward_server import __version__
from reward_server.api.access import Access, access_of
from reward_server.api.answers import ERRORS
from reward_server.auth.scopes import ANY
from trainer_client.wire import ErrorEnvelope

_REF = "#/components/schemas/{model}"
_ALWAYS = (500, 503)
_IF_BODY = (400, 408, 413)
_IF_CHANGING = (415,)
_IF_LIMITED = (401, 429)
_RETRYABLE = "Idempotency-Key"
_NOT_OURS = ("HTTPValidationError", "ValidationError")
"""Bodies of the framework's 422, which this server never sends."""
_EXAMPLE_ERROR = {
    "message": "The request is not valid.",
    "data": {
        "request_id": "req_k3vmqz5x7yd2w4tnb6rj8fh2",
        "code": "invalid_request",
        "errors": [{"loc": ["scenario_slug"], "msg": "Is required."}],
    },
}
_DESCRIPTION = (
    "A reward service for reinforcement learning of conversational agents: play episodes against simulated "
    "personas, and score conversations with hidden rubrics."
)
_HEADERS = {
    "RequestId": ("Identifier of the request; the same as `request_id`.", {"type": "string"}),
    "RateLimitLimit": ("Requests per minute of the key.", {"type": "integer"}),
    "RateLimitRemaining": ("Requests left.", {"type": "integer"}),
    "RateLimitReset": ("Unix time in seconds at which the window is reset.", {"type": "integer"}),
    "RetryAfter": ("Seconds to wait before the next attempt.", {"type": "integer"}),
    "RetryAfterIfKnown": ("Seconds to wait before the next attempt; absent if unknown.", {"type": "integer"}),
}


def build(app: FastAPI) -> dict[str, Any]:
    """The document of this app."""
    document = get_openapi(
        title="Labs API", version=__version__, description=_DESCRIPTION, routes=app.routes, openapi_version="3.1.0"
    )
    schemas = document["components"]["schemas"]
    for name in _NOT_OURS:
        schemas.pop(name, None)
    envelope = ErrorEnvelope.model_json_schema(ref_template=_REF, mode="serialization")
    schemas |= {**envelope.pop("$defs"), "ErrorEnvelope": envelope}
    document["components"]["headers"] = {
        name: {"description": text, "schema": kind} for name, (text, kind) in _HEADERS.items()
    }
    document["components"]["responses"] = {f"Error{status}": _error(status) for status in ERRORS}
    answered: set[str] = set()
    for route in iter_route_contexts(app.routes):
        if route.endpoint is not None and getattr(route, "include_in_schema", False):
            for method, described in document["paths"][route.path_format].items():
                if method.upper() in (route.methods or ()):
                    _complete(described, access_of(route.endpoint), changing=method == "post")
                    _with_nulls(described["responses"]["200"], route.responses)
                    answered.update(_references(described["responses"]["200"].get("content")))
    seen: set[str] = set()
    for name in (*answered, "ErrorEnvelope"):
        _drop_nulls(name, schemas, seen)
    return document


def _drop_nulls(name: str, schemas: dict[str, Any], seen: set[str]) -> None:
    """An optional field of a response is absent, never null: take the null out of its type."""
    if name in seen:
        return
    seen.add(name)
    schema = schemas[name]
    for field, described in schema.get("properties", {}).items():
        options = described.get("anyOf", [])
        kept = [option for option in options if option != {"type": "null"}]
        if field not in schema.get("required", []) and len(kept) == 1 and len(options) == 2:
            described.pop("anyOf")
            described.pop("default", None)
            described.update(kept[0])
    for child in _references(schema):
        _drop_nulls(child, schemas, seen)


def _with_nulls(success: dict[str, Any], declared: Mapping[int | str, dict[str, Any]]) -> None:
    """The framework drops nulls wherever they stand, also in examples."""
    for media, shown in declared.get(200, {}).get("content", {}).items():
        if "example" in shown:
            success["content"][media]["example"] = shown["example"]


def _references(node: object) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"].rpartition("/")[2]] if isinstance(node.get("$ref"), str) else []
        return own + [name for value in node.values() for name in _references(value)]
    if isinstance(node, list):
        return [name for value in node for name in _references(value)]
    return []


def _error(status: int) -> dict[str, Any]:
    headers = {"X-Request-ID": {"$ref": "#/components/headers/RequestId"}}
    if status in (429, 502, 503):
        header = "RetryAfterIfKnown" if status == 502 else "RetryAfter"
        headers["Retry-After"] = {"$ref": f"#/components/headers/{header}"}
    content: dict[str, Any] = {"schema": {"$ref": _REF.format(model="ErrorEnvelope")}}
    if status == 400:
        content["example"] = _EXAMPLE_ERROR
    return {"description": ERRORS[status], "headers": headers, "content": {"application/json": content}}


def _complete(described: dict[str, Any], access: Access, *, changing: bool) -> None:
    """Add to one operation what all of its kind have."""
    responses = described["responses"]
    statuses = {int(status) for status in responses} - {200, 422} | {*_ALWAYS, *(_IF_CHANGING if changing else ())}
    headers = {"X-Request-ID": {"$ref": "#/components/headers/RequestId"}}
    if access.limited:
        statuses.update(_IF_LIMITED)
        described["security"] = access.security
        if access.scopes != ANY:
            statuses.add(403)
        for part in ("Limit", "Remaining", "Reset"):
            headers[f"X-RateLimit-{part}"] = {"$ref": f"#/components/headers/RateLimit{part}"}
    if "requestBody" in described:
        statuses.update(_IF_BODY)
    if any(parameter["name"] == _RETRYABLE for parameter in described.get("parameters", ())):
        statuses.add(409)
    described["responses"] = {"200": {**responses["200"], "headers": headers}} | {
        str(status): {"$ref": f"#/components/responses/Error{status}"} for status in sorted(statuses)
    }


def render(document: dict[str, Any]) -> str:
    """The document as it is committed: readable and stable."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
