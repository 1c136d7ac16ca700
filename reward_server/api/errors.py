"""Maps what went wrong to a status and the error envelope; the only place where both are known.

The envelope is `{"message", "data": {"request_id", "code", "retry_after_s"?, "errors"?}}`. It never repeats what the
caller sent: of a validation error only the place, the kind of problem and the size of what was sent go out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json
from starlette.exceptions import HTTPException

from reward_server.api.known_fields import meant
from reward_server.api.problems import in_words
from reward_server.errors import (
    BodyTooLarge,
    BodyTooSlow,
    ClientError,
    Conflict,
    FieldProblem,
    Forbidden,
    InvalidRequest,
    InvalidRewardConfig,
    JudgeFailed,
    LabsError,
    NotFound,
    NotJson,
    NotReady,
    ProviderFailed,
    RateLimited,
    Unauthenticated,
    Unavailable,
)

STATUSES: Mapping[type[LabsError], int] = {
    InvalidRequest: 400,
    Unauthenticated: 401,
    Forbidden: 403,
    NotFound: 404,
    BodyTooSlow: 408,
    Conflict: 409,
    BodyTooLarge: 413,
    NotJson: 415,
    RateLimited: 429,
    ClientError: 400,
    ProviderFailed: 502,
    Unavailable: 503,
    LabsError: 500,
}
MAX_PROBLEMS = 20
MAX_KEY_CHARACTERS = 64


def status_of(error: LabsError) -> int:
    """The HTTP status of an error: that of its nearest ancestor in the table."""
    return next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)


def wait_of(error: LabsError) -> int | None:
    """After how many seconds the same request may work; None where nobody knows, or where waiting is of no use."""
    return error.retry_after_s if isinstance(error, RateLimited | Unavailable | JudgeFailed) else None


def envelope(
    request_id: str, message: str, code: str, problems: Iterable[FieldProblem] = (), retry_after_s: int | None = None
) -> bytes:
    """The body of an error response."""
    data: dict[str, Any] = {"request_id": request_id, "code": code}
    if retry_after_s is not None:
        data["retry_after_s"] = retry_after_s
    errors = [{"loc": list(problem.loc), "msg": problem.msg} for problem in problems]
    if errors:
        data["errors"] = errors
    return to_json({"message": message, "data": data})


def error_response(request_id: str, error: LabsError) -> Response:
    """The response to one of our own errors."""
    status = status_of(error)
    headers, wait_s = {}, wait_of(error)
    if wait_s is not None:
        headers["Retry-After"] = str(wait_s)
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, BodyTooSlow):
        headers["Connection"] = "close"
    return json_response(enveloped(request_id, error), status, headers)


def enveloped(request_id: str, error: LabsError) -> bytes:
    """One of our own errors as the body of its response."""
    problems = error.errors if isinstance(error, InvalidRequest | NotReady) else ()
    # A defect's own message may hold anything; the caller gets the fixed one of the class.
    message = LabsError.default_message if status_of(error) == 500 else error.message
    return envelope(request_id, message, error.code, problems, wait_of(error))


def json_response(body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON response from bytes that are rendered already."""
    return Response(body, status_code=status, headers=dict(headers or {}), media_type="application/json")


def problems_of(
    error: ValidationError | RequestValidationError, model: type[BaseModel] | None = None
) -> list[FieldProblem]:
    """Place and kind of each problem, without the input: of that, only size and type are told.

    Of an unknown field of `model`, the one that was probably meant is named.
    """
    details = error.errors(include_url=False) if isinstance(error, ValidationError) else error.errors()
    return [FieldProblem(_shown(detail["loc"]), _words(detail, model)) for detail in details[:MAX_PROBLEMS]]


def _words(detail: Mapping[str, Any], model: type[BaseModel] | None) -> str:
    text = in_words(detail)
    field = meant(model, detail["loc"]) if model is not None and detail["type"] == "extra_forbidden" else None
    return text if field is None else f"{text.removesuffix('.')}: did you mean `{field}`?"


def invalid(error: ValidationError, model: type[BaseModel], prefix: tuple[str | int, ...] = ()) -> InvalidRequest:
    """Our error for a body that does not fit the schema of a model."""
    problems = [FieldProblem(prefix + problem.loc, problem.msg) for problem in problems_of(error, model)]
    about_weights = all("reward_config" in problem.loc for problem in problems)
    return (InvalidRewardConfig if about_weights else InvalidRequest)(errors=problems)


def install(app: FastAPI) -> None:
    """Answer every error that reaches the framework in the envelope."""
    app.add_exception_handler(LabsError, _on_labs_error)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(HTTPException, _on_http_exception)


def _shown(loc: Iterable[str | int]) -> tuple[str | int, ...]:
    return tuple(part[:MAX_KEY_CHARACTERS] if isinstance(part, str) else part for part in loc)


async def _on_labs_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, LabsError):
        raise error
    request.state.trace["code"] = error.code
    return error_response(request.state.request_id, error)


async def _on_validation_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        raise error
    return await _on_labs_error(request, InvalidRequest(errors=problems_of(error)))


async def _on_http_exception(request: Request, error: Exception) -> Response:
    """The framework's own refusals: no such route, or not with this method."""
    if not isinstance(error, HTTPException):
        raise error
    if error.status_code != 405:
        return await _on_labs_error(request, NotFound("There is no such route. Is /api/v1 or an id missing?"))
    allowed = allowed_methods(request)
    headers = {"Allow": ", ".join(sorted(allowed))}
    if request.method == "OPTIONS":
        return Response(status_code=204, headers=headers)
    request.state.trace["code"] = "method_not_allowed"
    body = envelope(request.state.request_id, "This method is not allowed here.", "method_not_allowed")
    return json_response(body, 405, headers)


def allowed_methods(request: Request) -> set[str]:
    """All methods of the path: the framework names only those of the first route that fits."""
    methods = {"OPTIONS"}
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        scope = {**request.scope, "method": method}
        if any(route.matches(scope)[0].name == "FULL" for route in request.app.routes):
            methods |= {method} if method != "GET" else {"GET", "HEAD"}
    return methods
