"""Signatures and secrets stay what receivers have: those of the first version, written out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from reward_server.webhooks.signing import secret_of, signed_headers


def test_a_secret_stays_the_same() -> None:
    assert secret_of(b"pepper", "wh_1") == "whsec_D1exCtceOKBhaWxAqlyNi1dMbJKipGB4eOW1sVFDEY8="


@pytest.mark.parametrize(
    "now",
    [
        datetime(2026, 3, 1, 12, 0, 0, 900_000, tzinfo=UTC),
        datetime(2026, 3, 1, 14, 0, tzinfo=timezone(timedelta(hours=2))),
    ],
)
def test_the_same_message_has_the_same_headers(now: datetime) -> None:
    assert signed_headers(b"pepper", "wh_1", "msg_1", '{"a": "é"}', now) == {
        "webhook-id": "msg_1",
        "webhook-timestamp": "1772366400",
        "webhook-signature": "v1,igviz3wY3xtRQRJntBuUEIoBZzhGz2dnrHkS2fEg/c4=",
    }
