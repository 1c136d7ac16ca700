"""Builds the OpenAPI 3.1 document from the routes and the wire types.

`python -m reward_server.server.openapi_document > docs/openapi.json` writes it to a file.

Paths and parameters come from the framework; bodies, statuses, headers and security from what each
route declares (`api.operation`). There is no 422: this server answers 400. A response never holds
null for an absent field, and the document says so.
"""

from __future__ import annotations

import json
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import iter_route_contexts
from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from reward_server import __version__
from reward_server.api.operation import SCHEME, Operation, operation_of
from reward_server.auth.scopes import ANY
from trainer_client.wire import ErrorEnvelope

_REF = "#/components/schemas/{model}"
_ALWAYS = (500, 503)
_IF_BODY = (400, 408, 413)
_IF_CHANGING = (415,)
_IF_LIMITED = (401, 429)
_ERRORS = {
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
_IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Makes a retry safe: the same key and body return the stored response for 24 hours.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
}

_API_KEY = {"type": "http", "description": "An API key: `lab_…`.", "scheme": "bearer"}


def build(app: FastAPI) -> dict[str, Any]:
    """The document of this app."""
    document = get_openapi(
        title="Labs API", version=__version__, description=_DESCRIPTION, routes=app.routes, openapi_version="3.1.0"
    )
    operations = [
        (document["paths"][route.path_format][method.lower()], operation_of(route.endpoint), method == "POST")
        for route in iter_route_contexts(app.routes)
        if route.endpoint is not None and getattr(route, "include_in_schema", False)
        for method in route.methods or ()
    ]
    refs, schemas = _schemas([declared for _, declared, _ in operations])
    components = document.setdefault("components", {})
    framework = components.get("schemas", {})
    components["schemas"] = {k: v for k, v in framework.items() if k not in _NOT_OURS} | schemas
    components["securitySchemes"] = {SCHEME: _API_KEY}
    components["headers"] = {name: {"description": text, "schema": kind} for name, (text, kind) in _HEADERS.items()}
    components["responses"] = {f"Error{status}": _error(status) for status in _ERRORS}
    for described, declared, changing in operations:
        _complete(described, declared, refs, changing=changing)
    return document


def _schemas(operations: list[Operation]) -> tuple[dict[tuple[type, str], str], dict[str, Any]]:
    wanted: list[tuple[type[BaseModel], JsonSchemaMode]] = [(ErrorEnvelope, "serialization")]
    for operation in operations:
        wanted.append((operation.response, "serialization"))
        if operation.request:
            wanted.append((operation.request, "validation"))
    found, document = models_json_schema(list(dict.fromkeys(wanted)), ref_template=_REF)
    refs: dict[tuple[type, str], str] = {(model, mode): schema["$ref"] for (model, mode), schema in found.items()}
    schemas: dict[str, Any] = document["$defs"]
    for model, mode in refs:
        if mode == "serialization":
            _drop_nulls(refs[model, mode].rpartition("/")[2], schemas, set())
    return refs, schemas


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
    return {"description": _ERRORS[status], "headers": headers, "content": {"application/json": content}}


def _complete(
    described: dict[str, Any], operation: Operation, refs: dict[tuple[type, str], str], *, changing: bool
) -> None:
    statuses = {*operation.errors, *_ALWAYS, *(_IF_CHANGING if changing else ())}
    headers = {"X-Request-ID": {"$ref": "#/components/headers/RequestId"}}
    if operation.limited:
        statuses.update(_IF_LIMITED)
        described["security"] = operation.security
        if operation.scopes != ANY:
            statuses.add(403)
        for part in ("Limit", "Remaining", "Reset"):
            headers[f"X-RateLimit-{part}"] = {"$ref": f"#/components/headers/RateLimit{part}"}
    if operation.request:
        statuses.update(_IF_BODY)
        content = _content(refs[operation.request, "validation"], operation.request_example)
        described["requestBody"] = {"required": True, "content": content}
    if operation.request_media:
        statuses.update(_IF_BODY)
        content = {operation.request_media: {"schema": {"type": "string"}}}
        described["requestBody"] = {"required": True, "content": content}
    if operation.retryable:
        described.setdefault("parameters", []).append(_IDEMPOTENCY_KEY)
        statuses.add(409)
    ok = {"description": "Success", "headers": headers}
    shown = _content(refs[operation.response, "serialization"], operation.response_example)
    body = shown["application/json"]
    content = {operation.response_media: _event(body, operation) if operation.events else body}
    if operation.stream_media:
        content[operation.stream_media] = {"schema": _UNNAMED_EVENT}
    ok["content"] = content
    described["responses"] = {"200": ok} | {
        str(status): {"$ref": f"#/components/responses/Error{status}"} for status in sorted(statuses)
    }


_UNNAMED_EVENT = {"type": "object", "properties": {"data": {"type": "string"}}, "required": ["data"]}
"""A server-sent event of which only the data counts."""


def _content(ref: str, example: Any) -> dict[str, Any]:
    described: dict[str, Any] = {"schema": {"$ref": ref}}
    if example:
        described["example"] = example if isinstance(example, list) else dict(example)
    return {"application/json": described}


def _event(body: dict[str, Any], operation: Operation) -> dict[str, Any]:
    """One server-sent event, whose data is this body, or text."""
    data: dict[str, Any] = {"type": "string"}
    if operation.is_event_json:
        data |= {"contentMediaType": "application/json", "contentSchema": body["schema"]}
    fields = {"event": {"enum": list(operation.events), "type": "string"}, "data": data}
    described: dict[str, Any] = {"schema": {"type": "object", "properties": fields, "required": list(fields)}}
    if "example" in body:
        described["example"] = {"event": operation.events[0], "data": json.dumps(body["example"])}
    return described


def render(document: dict[str, Any]) -> str:
    """The document as it is committed: readable and stable."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
