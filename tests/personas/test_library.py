"""The temperaments that come with the package are complete and human."""

from __future__ import annotations

import pytest

from personas.case.library import load_temperaments
from personas.case.temperament import Phrases, Temperament
from personas.text.wording import normal

ALL = load_temperaments()
LISTS = tuple(name for name in Phrases.model_fields if name != "lead_in")


def test_there_are_five_and_their_numbers_are_as_documented() -> None:
    assert sorted(ALL) == ["anxious", "guarded", "hurried", "plainspoken", "talkative"]
    assert (ALL["plainspoken"].reserve, ALL["plainspoken"].patience) == (0, 8)
    assert ALL["guarded"].reserve == 1
    assert (ALL["hurried"].patience, ALL["hurried"].facts_per_turn) == (5, 1)
    assert all(slug == temperament.slug for slug, temperament in ALL.items())


@pytest.mark.parametrize("temperament", ALL.values(), ids=ALL.keys())
def test_every_move_has_four_to_eight_different_wordings(temperament: Temperament) -> None:
    for name in LISTS:
        lines = getattr(temperament.phrases, name)
        assert 4 <= len(lines) <= 8, name
        assert len({normal(line) for line in lines}) == len(lines), name


def test_no_two_temperaments_share_a_wording() -> None:
    seen: dict[str, str] = {}
    for slug, temperament in ALL.items():
        for name in LISTS:
            for line in getattr(temperament.phrases, name):
                if len(line.split()) > 4:
                    assert seen.setdefault(normal(line), slug) == slug


@pytest.mark.parametrize("temperament", ALL.values(), ids=ALL.keys())
def test_phrases_before_a_fact_end_so_that_a_fact_can_follow(temperament: Temperament) -> None:
    for line in (*temperament.phrases.again, *temperament.phrases.lead_in):
        assert line[-1] in ",.:?!"


@pytest.mark.parametrize("temperament", ALL.values(), ids=ALL.keys())
def test_phrases_fit_any_role(temperament: Temperament) -> None:
    text = normal(" ".join(line for name in Phrases.model_fields for line in getattr(temperament.phrases, name)))
    for word in ("doctor", "nurse", "teacher", "refund", "symptom", "homework", "ticket", "salary", "contract"):
        assert f" {word} " not in text
