"""Broken sentences are broken in the ways they say, and slips are not breaks."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from reward_server.fitting.reader.corruptions import FREQUENT, CorruptedSentence, Corruptor

ASKED = [
    "Do you take any painkillers for the pain in your back?",
    "What colour are your stools when you go in the morning?",
    "Have you been to the doctor about the cough this winter?",
    "How long does it take until the tablets help you at all?",
    "Is there anybody at home who could drive you over to us?",
]
ORDERED = [
    "I'll send the new kettle out to your address by Friday.",
    "You can keep the old one or throw it away, as you like.",
]
SOURCES = {"doctor": ASKED * FREQUENT, "shop": ORDERED}


def made(seed: int, count: int = 300) -> list[CorruptedSentence]:
    corruptor = Corruptor(SOURCES, random.Random(seed))
    found = (corruptor.broken("doctor", ASKED[number % len(ASKED)]) for number in range(count))
    return [each for each in found if each is not None]


def test_every_way_is_used_and_nothing_made_is_a_sentence_of_the_sources() -> None:
    found = made(0)
    assert set(Counter(each.way for each in found)) == {
        "splice",
        "patchwork",
        "insertion",
        "dangling",
        "shuffle",
        "chain",
        "glue",
    }
    assert not {each.text for each in found} & {*ASKED, *ORDERED}


def test_the_same_chance_breaks_the_same() -> None:
    assert made(3) == made(3) != made(4)


def test_words_come_from_one_source() -> None:
    words = {word.strip(".,?!").lower() for text in ASKED for word in text.split()}
    for each in made(1):
        if each.way not in ("glue", "dangling"):
            assert {word.strip(".,?!").lower() for word in each.text.split()} <= words


def test_seams_are_words_of_the_sentence_and_a_dangling_one_breaks_at_its_end() -> None:
    for each in made(2):
        count = len(each.text.split())
        assert all(0 <= seam < count for seam in each.seams if each.way != "insertion")
        if each.way == "dangling":
            assert each.seams == (count - 1,)
            assert each.text.split()[-1].rstrip("?.").lower() in {"the", "do", "your", "to", "any", "until", "does"} | {
                word.lower() for text in ASKED for word in text.split()
            }


def test_a_splice_begins_as_the_sentence_and_ends_as_another() -> None:
    for each in (each for each in made(5) if each.way == "splice"):
        words = each.text.split()
        assert any(text.split()[:2] == words[:2] for text in ASKED)
        assert any(text.split()[-1] == words[-1] for text in ASKED)


def test_a_sentence_too_short_to_break_is_no_example() -> None:
    alone = Corruptor({"a": ["Why?"]}, random.Random(0))
    assert alone.broken("a", "Why?") is None


@pytest.mark.parametrize("seed", range(20))
def test_a_slip_changes_letters_and_ends_or_one_word(seed: int) -> None:
    corruptor = Corruptor(SOURCES, random.Random(seed))
    for text in ASKED:
        before, after = text.split(), corruptor.slipped(text).split()
        assert len(before) - len(after) in (0, 1)
        same = sum(word.strip("?.").lower() in corruptor.slipped(text).lower() for word in before)
        assert same >= len(before) - 3
