"""What must not be in a log, whatever field or depth it is logged in."""

from __future__ import annotations

from typing import Any

import pytest

from reward_server.logs.redaction import MAX_DEPTH, REDACTED, clean_text, redact

KEY = "lab_abcdefghijklmnop_" + "q2" * 20


def logged(**event: Any) -> dict[str, Any]:
    return dict(redact(None, "info", event))


@pytest.mark.parametrize("name", ["content", "Messages", "persona_state", "rubric", "Authorization", "set-cookie"])
def test_private_fields_are_redacted_at_any_depth(name: str) -> None:
    assert logged(**{name: ["canary"]}) == {name: REDACTED}
    assert logged(outer={"inner": [{name: {"deep": "canary"}}]}) == {"outer": {"inner": [{name: REDACTED}]}}


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        (f"key {KEY} was used", f"key lab_{REDACTED} was used"),
        ("Authorization: Bearer abcdef123456", f"Authorization: Bearer {REDACTED}"),
        ("sk-" + "a1" * 12, f"sk-{REDACTED}"),
        ("postgresql://user:hunter2@host/db", f"postgresql://{REDACTED}@host/db"),
        ("http://127.0.0.1:8321/api/v1", "http://127.0.0.1:8321/api/v1"),
        ("lab_id=acme", "lab_id=acme"),
        ("token eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.c2ln of ada", f"token {REDACTED} of ada"),
        ("the bearer of bad news", "the bearer of bad news"),
    ],
)
def test_credentials_are_found_in_any_text(text: str, cleaned: str) -> None:
    assert clean_text(text) == cleaned


@pytest.mark.parametrize("wrap", [str, lambda key: [key], lambda key: {"a": (key,)}, lambda key: {"a": {key}}])
def test_credentials_are_found_in_any_value(wrap: Any) -> None:
    assert KEY not in str(logged(event="e", field=wrap(KEY)))


def test_objects_are_logged_as_cleaned_text_and_bytes_not_at_all() -> None:
    assert logged(error=ValueError(KEY)) == {"error": f"lab_{REDACTED}"}
    assert logged(data=b"canary") == {"data": REDACTED}


def test_numbers_and_plain_fields_pass_unchanged() -> None:
    event = {"event": "turn_answered", "turn": 3, "ms": 1.5, "ok": True, "none": None, "route": "/episodes/{id}"}
    assert logged(**event) == event


def test_bottomless_values_end() -> None:
    value: list[Any] = []
    value.append(value)
    assert str(logged(v=value)).count("[") <= MAX_DEPTH + 2
