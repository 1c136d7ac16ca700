"""Identifiers and moments."""

from __future__ import annotations

import os
from collections import Counter
from datetime import UTC, datetime, timedelta, timezone

import pytest

from reward_server import ids
from reward_server.clock import ManualClock, SystemClock, to_iso
from reward_server.ids import IdPrefix, is_id


@pytest.mark.parametrize(
    ("make", "prefix"),
    [
        (ids.new_episode_id, IdPrefix.EPISODE),
        (ids.new_evaluation_id, IdPrefix.EVALUATION),
        (ids.new_request_id, IdPrefix.REQUEST),
        (ids.new_comparison_id, IdPrefix.COMPARISON),
    ],
)
def test_an_identifier_has_its_prefix_and_24_characters(make: object, prefix: IdPrefix) -> None:
    made = {make() for _ in range(1000)}  # type: ignore[operator]
    assert len(made) == 1000
    for identifier in made:
        assert is_id(identifier, prefix)
        assert len(identifier) == len(prefix) + 25


def test_each_of_32_characters_is_as_likely_as_the_others() -> None:
    assert len(ids._CHARACTERS) == 256
    assert set(Counter(ids._CHARACTERS).values()) == {8}
    assert set(ids.random_token(4096)) == set("abcdefghijklmnopqrstuvwxyz234567")


def test_a_forked_process_gives_out_other_tokens() -> None:
    ids.new_token()  # others lie ready now
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, ids.new_token().encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(reading, 100).decode()
    for end in (reading, writing):
        os.close(end)
    assert len(theirs) == 24
    assert theirs not in {ids.new_token() for _ in range(ids._MADE_AT_ONCE)}


@pytest.mark.parametrize(
    "text", ["", "ep_", "ep_" + "a" * 23, "ep_" + "a" * 25, "ep_" + "A" * 24, "ep_" + "a" * 24 + "\n", "ev_" + "a" * 24]
)
def test_anything_else_is_no_episode(text: str) -> None:
    assert not is_id(text, IdPrefix.EPISODE)


def test_moments_are_written_in_utc() -> None:
    moment = datetime(2026, 11, 21, 18, 30, 15, 123456, tzinfo=timezone(timedelta(hours=9)))
    assert to_iso(moment) == "2026-11-21T09:30:15.123Z"


def test_clocks_tell_aware_moments() -> None:
    assert SystemClock().now().tzinfo is UTC
    clock = ManualClock()
    before = clock.now()
    clock.advance(timedelta(hours=24))
    assert clock.now() - before == timedelta(hours=24)
