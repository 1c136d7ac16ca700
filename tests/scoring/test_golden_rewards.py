"""Rewards move only under another scoring version."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scoring.golden import TALKS, computed, kept

HOW = "python -m tests.scoring.golden writes the file anew"


@pytest.fixture(scope="module")
def now() -> dict[str, Any]:
    return computed()


def test_the_file_is_of_this_scoring_version(now: dict[str, Any]) -> None:
    """Where this alone fails, a revision, a judge, the reader or the encoder changed: write the file anew."""
    assert (kept()["scoring_version"], kept()["revisions"]) == (now["scoring_version"], now["revisions"]), HOW


def test_rewards_are_the_golden_ones(now: dict[str, Any]) -> None:
    """Where this fails and nothing was raised: raise the revision of the module that changed what it decides."""
    assert kept()["rewards"] == now["rewards"]


def test_they_say_what_they_should(now: dict[str, Any]) -> None:
    rewards = now["rewards"]
    assert list(rewards) == list(TALKS)
    assert rewards["everything"] > 0.9
    assert rewards["in other words"] > rewards["half"] > rewards["one reply"] > rewards["one word"]
    assert rewards["one word"] == rewards["an insult"] == rewards["noise"] == rewards["small talk"] == 0.0
    assert rewards["an order"] <= 0.2
