"""One attempt over HTTP, alike for all providers: time, size, statuses, and failures without content.

The exceptions of the SDKs carry the request, and with it transcript and rubric. `attempt` is the boundary that none
of them passes: what leaves it is an answer or an `LlmFailed` without cause and context.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx2

from reward_server.llm.base import FailureKind, LlmFailed
from reward_server.logs.logger import get_logger

CONNECT_S = 5.0
MAX_ERROR_BYTES = 65_536
MAX_BODY_BYTES = 1_048_576
MAX_BODY_BYTES_WITH_LOGPROBS = 16_777_216
"""Twenty alternatives of 80 bytes for each of several thousand tokens are some megabytes."""
MAX_RETRY_AFTER_S = 86_400.0
BEYOND_CONTEXT = frozenset({"context_length_exceeded", "exceed_context_size_error"})
"""What OpenAI and llama.cpp call a question that the model's context has no room for."""
WHOLE_INPUT = frozenset({"input_tokens", "input_text"})
"""The parameters that vLLM then complains about."""
HINTS: Mapping[FailureKind, str] = {
    FailureKind.UNAUTHORISED: "check LABS_LLM_API_KEY and the account's balance",
    FailureKind.NOT_FOUND: "the path or the model does not exist: check LABS_LLM_BASE_URL (most servers "
    "want it to end in /v1) and LABS_LLM_MODEL",
}
"""What an operator can do against a refusal of all questions."""

Result = TypeVar("Result")

log = get_logger(__name__)

_WORD = re.compile(r"[a-z][a-z0-9_.]{0,63}")


@dataclass(slots=True)
class AttemptProgress:
    """The progress of an attempt."""

    began: bool = False
    """Whether the response has begun."""


@dataclass(frozen=True, slots=True)
class RefusedResponse:
    """A response with an error status, reduced to what may be logged."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    code: str = ""
    """The provider's word for it; empty where it gives none that looks like one."""
    too_long: bool = False
    """Whether the provider says that the question does not fit the model."""
    told: bool = False
    """Whether the adapter knows better what is refused, and tells operators itself."""


async def attempt(
    send: Callable[[AttemptProgress], Awaitable[Result]],
    timeout_s: float,
    *,
    refusal_of: Callable[[Exception], RefusedResponse | None],
    who: Mapping[str, str],
) -> Result:
    """Send once. `refusal_of` reads the SDK's exception of an error status; `who` goes into operators' logs.

    Raises:
        LlmFailed: whatever went wrong; with neither cause nor context.
    """
    progress = AttemptProgress()
    try:
        async with asyncio.timeout(timeout_s):
            return await send(progress)
    except LlmFailed as failed:
        failure = failed
    except TimeoutError:
        failure = LlmFailed(_late(progress))
    except Exception as error:  # noqa: BLE001  (the provider boundary: what an SDK may raise is no closed list)
        failure = _failure(error, progress, refusal_of(error), who)
    # Raised outside the handlers: an exception of the SDK as context would carry the request along.
    raise failure.with_traceback(None)


def _late(progress: AttemptProgress) -> FailureKind:
    return FailureKind.HANG if progress.began else FailureKind.TIMEOUT


def _failure(
    error: Exception, progress: AttemptProgress, refusal: RefusedResponse | None, who: Mapping[str, str]
) -> LlmFailed:
    if refusal is not None:
        return _refused(refusal, who)
    chain = (error, error.__cause__, error.__context__)
    if any(isinstance(link, (httpx2.TimeoutException, TimeoutError)) for link in chain):
        return LlmFailed(_late(progress))
    if any(isinstance(link, (httpx2.DecodingError, UnicodeError)) for link in chain):
        return LlmFailed(FailureKind.MALFORMED)
    if any(isinstance(link, (httpx2.TransportError, OSError)) for link in chain):
        return LlmFailed(FailureKind.RESET)
    log.error("llm_call_broke", error=f"{type(error).__module__}.{type(error).__qualname__}", **who)
    return LlmFailed(FailureKind.REJECTED)


def _refused(refusal: RefusedResponse, who: Mapping[str, str]) -> LlmFailed:
    kind = kind_of_status(refusal.status, refusal.code, too_long=refusal.too_long)
    if refusal.told:
        pass
    elif kind in HINTS:
        log.error("llm_provider_refuses_us", status=refusal.status, code=refusal.code, hint=HINTS[kind], **who)
    elif kind is FailureKind.REJECTED:
        log.error("llm_question_rejected", status=refusal.status, code=refusal.code, **who)
    waits = kind in {FailureKind.RATE_LIMITED, FailureKind.OVERLOADED}
    return LlmFailed(kind, retry_after_s=retry_after_s(refusal.headers, datetime.now(UTC)) if waits else None)


def kind_of_status(status: int, code: str = "", *, too_long: bool = False) -> FailureKind:
    """The meaning of an error status. `code` tells an empty account from a busy minute where both are a 429."""
    if status == 413 or too_long:
        return FailureKind.TOO_LARGE
    if status == 404:
        return FailureKind.NOT_FOUND
    if status in {401, 402, 403} or code == "insufficient_quota":
        return FailureKind.UNAUTHORISED
    if status == 429:
        return FailureKind.RATE_LIMITED
    if status == 408:
        return FailureKind.TIMEOUT
    return FailureKind.OVERLOADED if status >= 500 else FailureKind.REJECTED


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds to wait, as `retry-after-ms` or `retry-after` (a number or a date) says; None if neither does."""
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name, "")
        if re.fullmatch(r"\d{1,12}(\.\d{1,6})?", text, re.ASCII):
            return min(float(text) * unit_s, MAX_RETRY_AFTER_S)
    try:
        moment = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return min(max((moment - now).total_seconds(), 0.0), MAX_RETRY_AFTER_S)


def word_of(value: object) -> str:
    """A provider's error code, if it is a plain word: anything else might be a quotation."""
    return value if isinstance(value, str) and _WORD.fullmatch(value) else ""


async def read_json(headers: Mapping[str, str], chunks: AsyncIterator[bytes], limit: int) -> Any:
    """The body of a response, never more than `limit` bytes of it.

    Raises:
        LlmFailed: `too_large`, `empty` or `malformed`.
    """
    promised = headers.get("content-length", "0")
    if promised.isascii() and promised.isdigit() and int(promised) > limit:
        raise LlmFailed(FailureKind.TOO_LARGE)
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > limit:
            raise LlmFailed(FailureKind.TOO_LARGE)
    if not body.strip():
        raise LlmFailed(FailureKind.EMPTY)
    document = _json(bytes(body))
    if not isinstance(document, dict):
        raise LlmFailed(FailureKind.MALFORMED)
    return document


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def count(value: object) -> int:
    """A number of tokens as a provider gives it; 0 where it is no such number."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def sendable(text: str) -> str:
    """The text with half characters (lone surrogates) replaced: they cannot be sent as UTF-8."""
    return text.encode("utf-8", "replace").decode()


def public_url(url: str) -> str:
    """Scheme, host, port and path: what of an address may be shown."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{host}{port}{parts.path}".rstrip("/")


async def bound_error_body(response: httpx2.Response) -> None:
    """A hook of the HTTP client: of a response with an error status only the beginning is ever read."""
    if response.status_code >= 300 and isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Beginning(response.stream)


class _Beginning(httpx2.AsyncByteStream):
    def __init__(self, whole: httpx2.AsyncByteStream) -> None:
        self._whole = whole

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MAX_ERROR_BYTES
        async for chunk in self._whole:
            yield chunk[:left]
            left -= len(chunk)
            if left <= 0:
                return

    async def aclose(self) -> None:
        await self._whole.aclose()


def timeout_of(timeout_s: float) -> httpx2.Timeout:
    """Connecting is given less time than answering."""
    return httpx2.Timeout(timeout_s, connect=min(CONNECT_S, timeout_s))


def silence(*loggers: str) -> None:
    """Keep SDKs from logging requests, which they do at DEBUG and where their own variables ask for it."""
    for name in (*loggers, "httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.WARNING)


def refusal_of_openai(error: Exception, *, told: bool = False) -> RefusedResponse | None:
    """The refusal in an error of OpenAI's SDK, by the names of its fields: adapters alone load the SDK itself."""
    status, response = getattr(error, "status_code", None), getattr(error, "response", None)
    if not isinstance(status, int) or not isinstance(response, httpx2.Response):
        return None
    # A chat server of another make puts the status into `code`, and its word into `type`.
    code = word_of(getattr(error, "code", None)) or word_of(getattr(error, "type", None))
    too_long = code in BEYOND_CONTEXT or word_of(getattr(error, "param", None)) in WHOLE_INPUT
    return RefusedResponse(status=status, headers=response.headers, code=code, too_long=too_long, told=told)
