"""Counts of what a text is made of, against values worked out by hand."""

from __future__ import annotations

import math
import zlib

import numpy as np
import pytest

from reward_server.reward_models.wordings import (
    COMMON,
    COSINE_TO_LATEST,
    MARKS,
    NUMBERS,
    HeardWordings,
    exchange_numbers,
    hashed,
    shares,
)

NOBODY = HeardWordings(frozenset(), frozenset(), frozenset())
NOTHING = np.zeros((0, 2), dtype=np.float32)


def test_shares_are_roots_of_smoothed_shares() -> None:
    found = shares("I think, I do not know.")
    assert found.shape == (len(COMMON) + len(MARKS),)
    assert found[COMMON.index("i")] == pytest.approx(math.sqrt(2 / (6 + 5)))
    assert found[COMMON.index("not")] == pytest.approx(math.sqrt(1 / 11))
    assert found[COMMON.index("sorry")] == 0.0
    assert found[len(COMMON) + MARKS.index(",")] == pytest.approx(math.sqrt(1 / 11))


def test_common_words_are_listed_once() -> None:
    assert len(set(COMMON)) == len(COMMON)


def test_hashed_words_have_unit_length_and_know_their_order() -> None:
    one, other = hashed("the dog bites the man"), hashed("the man bites the dog")
    assert np.linalg.norm(one) == pytest.approx(1.0)
    assert not np.array_equal(one, other)
    assert not hashed("").any()


def test_hashing_is_the_same_in_every_process() -> None:
    # CRC-32 of "yes" by its published polynomial, not Python's seeded hash.
    code = zlib.crc32(b"yes")
    found = hashed("YES!")
    assert np.flatnonzero(found).tolist() == [code % 1024]
    assert found[code % 1024] == (1.0 if code >= 2**31 else -1.0)


def test_numbers_of_an_exchange() -> None:
    own = np.array([[1.0, 0.0], [0.0, 1.0]], dtype=np.float32)
    last = np.array([[0.0, 1.0]], dtype=np.float32)
    heard = HeardWordings(frozenset({"take", "5"}), frozenset({"take"}), frozenset({"5"}))
    found = exchange_numbers(["Did you take 5 or 7?", "Take care."], own, last, last, heard)
    assert found.shape == (NUMBERS,)
    assert found[0] == pytest.approx(math.log1p(8))
    assert found[2] == pytest.approx(1 / 2)
    assert (found[9], found[10]) == pytest.approx((math.log1p(1), math.log1p(1)))  # 7 is new, 5 is not
    assert found[11] == pytest.approx(2 / 5)  # of did, you, take, take, care
    assert found[13:17] == pytest.approx([1.0, 0.5, 1.0, 0.5])  # MaxSim both ways, best, mean
    assert found[COSINE_TO_LATEST] == pytest.approx(math.sqrt(0.5))


def test_a_turn_that_answers_nobody_is_like_nobody() -> None:
    found = exchange_numbers(["Hello."], np.array([[1.0, 0.0]], dtype=np.float32), NOTHING, NOTHING, NOBODY)
    assert not found[13:].any()
