"""Sessions: sealed, bound to the server's pepper, and over after twelve hours."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from reward_server.console.session import LIFETIME_S, Sessions

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SESSIONS = Sessions(b"p" * 32)


def test_a_cookie_opens_where_it_was_sealed_and_hides_the_key() -> None:
    session = SESSIONS.begin(NOW, "lab_secret")
    sealed = SESSIONS.seal(session)
    assert SESSIONS.open(sealed, NOW) == session
    assert "lab_secret" not in sealed + repr(session)
    assert Sessions(b"q" * 32).open(sealed, NOW) is None


def test_it_runs_out() -> None:
    sealed = SESSIONS.seal(SESSIONS.begin(NOW))
    assert SESSIONS.open(sealed, NOW + timedelta(seconds=LIFETIME_S - 1)) is not None
    assert SESSIONS.open(sealed, NOW + timedelta(seconds=LIFETIME_S)) is None


def test_what_is_no_cookie_opens_nothing() -> None:
    sealed = SESSIONS.seal(SESSIONS.begin(NOW))
    for text in ("", "x", "é", sealed[:-4], sealed[:-2] + "AA", "A" * 200):
        assert SESSIONS.open(text, NOW) is None


def test_a_token_is_of_one_session() -> None:
    one, other = SESSIONS.begin(NOW), SESSIONS.begin(NOW)
    assert SESSIONS.is_token(one, SESSIONS.token(one))
    assert not SESSIONS.is_token(one, SESSIONS.token(other))
    assert not SESSIONS.is_token(one, "")
    assert not SESSIONS.is_token(one, "é")
