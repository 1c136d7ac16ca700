"""Statuses, waiting times and addresses; what may be shown of them."""

from __future__ import annotations

from datetime import UTC, datetime

import httpx2
import pytest

from reward_server.llm.base import FailureKind, LlmFailed
from reward_server.llm.transport import (
    MAX_RETRY_AFTER_S,
    AttemptProgress,
    attempt,
    kind_of_status,
    public_url,
    retry_after_s,
    sendable,
    word_of,
)

K = FailureKind
NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (429, "rate_limit_error", K.RATE_LIMITED),
        (429, "insufficient_quota", K.UNAUTHORISED),
        (529, "overloaded_error", K.OVERLOADED),
        (500, "", K.OVERLOADED),
        (503, "", K.OVERLOADED),
        (408, "", K.TIMEOUT),
        (401, "", K.UNAUTHORISED),
        (402, "", K.UNAUTHORISED),
        (403, "", K.UNAUTHORISED),
        (404, "", K.NOT_FOUND),
        (413, "", K.TOO_LARGE),
        (400, "", K.REJECTED),
        (422, "", K.REJECTED),
        (307, "", K.REJECTED),
    ],
)
def test_a_status_has_one_meaning(status: int, code: str, kind: FailureKind) -> None:
    assert kind_of_status(status, code) is kind


def test_a_question_that_does_not_fit_is_too_large() -> None:
    assert kind_of_status(400, too_long=True) is K.TOO_LARGE


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Sat, 21 Nov 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Sat, 21 Nov 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "999999999999"}, MAX_RETRY_AFTER_S),
    ],
)
def test_waiting_times_are_numbers_or_dates(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers, NOW) == seconds


@pytest.mark.parametrize("value", ["the patient hides it", "a" * 65, "Überlast", None, 5, ["rate_limit"], ""])
def test_only_a_plain_word_may_be_logged(value: object) -> None:
    assert word_of(value) == ""
    assert word_of("rate_limit_error") == "rate_limit_error"


def test_an_address_is_shown_without_credentials() -> None:
    assert public_url("https://user:pass@host:8443/v1/?key=secret#x") == "https://host:8443/v1"
    assert public_url("http://host") == "http://host"
    assert public_url("http://[::1]:8000/v1") == "http://[::1]:8000/v1"


def test_half_characters_can_be_sent() -> None:
    assert sendable("a\ud800b") == "a?b"
    assert sendable("ü🙂") == "ü🙂"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (httpx2.ConnectTimeout("secret"), K.TIMEOUT),
        (httpx2.ReadError("secret"), K.RESET),
        (httpx2.RemoteProtocolError("secret"), K.RESET),
        (httpx2.DecodingError("secret"), K.MALFORMED),
        (OSError("secret"), K.RESET),
        (ZeroDivisionError("secret"), K.REJECTED),
    ],
)
async def test_whatever_an_sdk_raises_leaves_as_a_kind(error: Exception, kind: FailureKind) -> None:
    async def send(progress: AttemptProgress) -> None:
        raise error

    with pytest.raises(LlmFailed) as caught:
        await attempt(send, 5.0, refusal_of=lambda error: None, who={})
    assert caught.value.kind is kind
    assert caught.value.__context__ is None
    assert "secret" not in str(caught.value)


async def test_a_response_that_began_hangs_and_one_that_did_not_is_late() -> None:
    async def late(progress: AttemptProgress) -> None:
        raise TimeoutError

    async def hanging(progress: AttemptProgress) -> None:
        progress.began = True
        raise httpx2.ReadTimeout("")

    for send, kind in ((late, K.TIMEOUT), (hanging, K.HANG)):
        with pytest.raises(LlmFailed) as caught:
            await attempt(send, 5.0, refusal_of=lambda error: None, who={})
        assert caught.value.kind is kind
