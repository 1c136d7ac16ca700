"""Errors that a call can raise.

    LabsError
    ├── BadRequest            400 and other refusals of the request itself
    │   ├── EpisodeComplete       a turn after the end of its episode
    │   └── PayloadTooLarge       413
    ├── Unauthenticated       401
    ├── Forbidden             403
    ├── NotFound              404 (also an expired episode)
    ├── Conflict              409
    │   ├── HistoryMismatch       the messages differ from the server's log
    │   ├── TurnInProgress        another turn of the episode is being answered (retried)
    │   └── IdempotencyMismatch   a key used again with another body
    ├── RateLimited           429      (retried)
    │   └── BudgetExhausted       the lab's language-model budget of the day is used up (not retried)
    ├── ProviderFailed        502      (retried)
    ├── Unavailable           503, 504 (retried)
    ├── ServerError           500 and the like (retried)
    │   └── MalformedAnswer       an answer that is not the contract's (not retried)
    ├── ConnectionFailed      no answer: refused, reset, broken off (retried)
    ├── DeadlineExceeded      no answer in time, or 408 (an attempt is retried, the call's own deadline is not)
    └── Unscored              a reward was asked of an item or episode that has none

Each carries `code` (a stable snake_case word), `host` where a server was asked, and `status` and `request_id` where it
answered. All of them pickle and copy, so they come out of worker processes as they went in.
"""

# The names are the contract's words; they are all under `LabsError`, which says that they are errors.
# ruff: noqa: N818

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import ValidationError

from trainer_client.wire import ErrorDetail, ErrorEnvelope

REASONS_SHOWN = 3


class LabsError(Exception):
    """Base of everything this package raises on purpose."""

    retryable: ClassVar[bool] = False
    """Whether the same request, with its idempotency key, may be sent again."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        status: int | None = None,
        request_id: str | None = None,
        errors: tuple[ErrorDetail, ...] = (),
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status
        self.request_id = request_id
        self.errors = errors
        self.retry_after_s = retry_after_s
        self.host: str | None = None
        """Host and port of the server that was asked; set by the client that asked it."""

    def __reduce__(self) -> tuple[Any, ...]:
        # The default calls the class with the message alone, which a class with a required `code` refuses.
        return _restored, (type(self), self.message), self.__dict__

    def __str__(self) -> str:
        where = [self.code]
        if self.status is not None:
            where.append(f"HTTP {self.status}")
        if self.request_id:
            where.append(self.request_id)
        if self.host and self.host not in self.message:
            where.append(self.host)
        return f"{self.explanation} [{', '.join(where)}]"

    @property
    def explanation(self) -> str:
        """The error in words: the message, with what is wrong with the request as far as it does not say it."""
        return f"{self.message}{self._reasons()}"

    def _reasons(self) -> str:
        """The faults of the request, as far as the message does not name them."""
        reasons = [f"{'.'.join(map(str, each.loc))}: {each.msg}" for each in self.errors]
        new = [reason for reason in reasons if reason not in self.message]
        if not new:
            return ""
        more = f"; and {len(new) - REASONS_SHOWN} more" if len(new) > REASONS_SHOWN else ""
        return f" ({'; '.join(new[:REASONS_SHOWN])}{more})"


def _restored(kind: type[LabsError], message: str) -> LabsError:
    """An error without its fields, which pickle sets next."""
    return kind.__new__(kind, message)


class BadRequest(LabsError):
    """The request was refused as it stands."""


class EpisodeComplete(BadRequest):
    """The episode had already ended."""


class PayloadTooLarge(BadRequest):
    """The body is larger than the server takes."""


class Unauthenticated(LabsError):
    """The API key is missing, malformed, unknown or revoked."""


class Forbidden(LabsError):
    """The key has no access to the collection."""


class NotFound(LabsError):
    """No such thing, or an expired episode, or another lab's."""


class Conflict(LabsError):
    """The request contradicts what the server knows."""


class HistoryMismatch(Conflict):
    """The messages sent differ from the server's log of the episode."""


class TurnInProgress(Conflict):
    """Another turn of the same episode is being answered: it can be asked for again soon."""

    retryable = True


class IdempotencyMismatch(Conflict):
    """The idempotency key was used before with another body."""


class RateLimited(LabsError):
    """Too many requests for now."""

    retryable = True


class BudgetExhausted(RateLimited):
    """The lab has used up what it may spend on language models today: trying again soon will not help.

    With the code `budget_too_small` no day has room for it: send less text, or ask for a higher limit.
    """

    retryable = False


class ProviderFailed(LabsError):
    """A judge or a persona failed; there is no reward."""

    retryable = True


class Unavailable(LabsError):
    """The server is not ready or overloaded."""

    retryable = True


class ServerError(LabsError):
    """The server failed."""

    retryable = True


class MalformedAnswer(ServerError):
    """The answer is not what the contract says; asking again would bring it again."""

    retryable = False


class ConnectionFailed(LabsError):
    """The server could not be reached, or broke off."""

    retryable = True


class DeadlineExceeded(LabsError):
    """No answer in time."""

    retryable = True


class Unscored(LabsError):
    """There is no reward here; a failure is never turned into a number."""


_BY_STATUS: dict[int, type[LabsError]] = {
    400: BadRequest,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    408: DeadlineExceeded,
    409: Conflict,
    413: PayloadTooLarge,
    429: RateLimited,
    502: ProviderFailed,
    503: Unavailable,
    504: Unavailable,
}

_BY_CODE: dict[tuple[int, str], type[LabsError]] = {
    (400, "episode_complete"): EpisodeComplete,
    (429, "budget_exhausted"): BudgetExhausted,
    (429, "budget_too_small"): BudgetExhausted,
    # What a gateway says in place of a server that is away: it has no envelope of the contract.
    (502, "http_502"): Unavailable,
    (504, "http_504"): Unavailable,
    (409, "history_mismatch"): HistoryMismatch,
    (409, "turn_in_progress"): TurnInProgress,
    (409, "idempotency_mismatch"): IdempotencyMismatch,
}


def error_class(status: int, code: str) -> type[LabsError]:
    """The class for a status that is not a success."""
    specific = _BY_CODE.get((status, code)) or _BY_STATUS.get(status)
    if specific is not None:
        return specific
    return BadRequest if 400 <= status < 500 else ServerError


def error_from_answer(
    status: int, headers: Mapping[str, str], body: bytes, retry_after_s: float | None = None
) -> LabsError:
    """Build the error of an answer; a body that is not the contract's envelope is not quoted."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    return error_from_envelope(status, content, headers.get("x-request-id"), retry_after_s)


def error_from_envelope(
    status: int, content: object, request_id: str | None, retry_after_s: float | None = None
) -> LabsError:
    """Build the error of what should be the contract's envelope."""
    try:
        envelope = ErrorEnvelope.model_validate(content)
    except ValidationError:
        code = f"http_{status}"
        message = f"The server answered HTTP {status}."
        errors: tuple[ErrorDetail, ...] = ()
    else:
        code, message = envelope.data.code, envelope.message
        request_id = envelope.data.request_id or request_id
        errors = tuple(envelope.data.errors or ())
    return error_class(status, code)(
        message, code=code, status=status, request_id=request_id, errors=errors, retry_after_s=retry_after_s
    )
