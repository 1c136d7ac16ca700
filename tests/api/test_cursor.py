"""Cursors are opaque and cannot be made up."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import pytest

from reward_server.api.cursor import CursorCodec
from reward_server.errors import InvalidCursor
from reward_server.ids import new_episode_id
from reward_server.store.records import PageEnd

CODEC = CursorCodec(b"secret")
POSITION = PageEnd(datetime(2026, 3, 4, 5, 6, 7, 123456, tzinfo=UTC), new_episode_id())


def test_what_is_written_can_be_read() -> None:
    assert CODEC.read("lab", CODEC.write("lab", POSITION), "ep") == POSITION
    old = PageEnd(datetime(1969, 1, 1, tzinfo=UTC), new_episode_id())
    assert CODEC.read("lab", CODEC.write("lab", old), "ep") == old


def test_another_lab_another_secret_or_another_list_cannot_use_it() -> None:
    cursor = CODEC.write("lab", POSITION)
    with pytest.raises(InvalidCursor):
        CODEC.read("other", cursor, "ep")
    with pytest.raises(InvalidCursor):
        CursorCodec(b"other").read("lab", cursor, "ep")
    with pytest.raises(InvalidCursor):
        CODEC.read("lab", cursor, "rm")


def test_every_changed_character_is_noticed() -> None:
    cursor = CODEC.write("lab", POSITION)
    for place in range(len(cursor)):
        for replacement in "AZ_-":
            changed = cursor[:place] + replacement + cursor[place + 1 :]
            if changed != cursor:
                with pytest.raises(InvalidCursor):
                    CODEC.read("lab", changed, "ep")


@pytest.mark.parametrize("cursor", ["", "x", "=", "!!!!", "é", "A" * 10_000, "\x00", "A=A=", "null", " "])
def test_made_up_cursors_are_refused(cursor: str) -> None:
    with pytest.raises(InvalidCursor):
        CODEC.read("lab", cursor, "ep")


def test_a_cursor_holds_no_readable_secret() -> None:
    raw = base64.urlsafe_b64decode(CODEC.write("lab", POSITION) + "==")
    assert b"secret" not in raw
    assert b"lab" not in raw[:12]


def test_neighbouring_moments_have_different_cursors() -> None:
    later = PageEnd(POSITION.created_at + timedelta(microseconds=1), POSITION.id)
    assert CODEC.write("lab", later) != CODEC.write("lab", POSITION)
