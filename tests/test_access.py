"""What keys see of an answer that is stored whole."""

from __future__ import annotations

import pytest

from reward_server.access import for_key, scored_for_key
from reward_server.auth.lab import Lab
from reward_server.auth.scopes import EVERY, USUAL, Scope

ANSWER = {"reward": 0.5, "score_breakdown": [], "capped_by": ["scope"], "persona_slug": "plainspoken", "seed": 3}
DRAWN = {"persona_slug", "seed"}
FULL = {"score_breakdown", "capped_by"}


def lab(*, full_scores: bool = False, scopes: frozenset[Scope] = USUAL) -> Lab:
    return Lab(lab_id="acme", key_id="k", per_minute=None, full_scores=full_scores, scopes=scopes)


@pytest.mark.parametrize(
    ("key", "hidden", "hidden_in_jobs"),
    [
        (lab(), FULL | DRAWN, FULL),
        (lab(scopes=EVERY), FULL, FULL),
        (lab(full_scores=True), set(), set()),
    ],
)
def test_what_is_hidden_depends_on_the_key(key: Lab, hidden: set[str], hidden_in_jobs: set[str]) -> None:
    assert set(ANSWER) - set(for_key(key, ANSWER)) == hidden
    assert set(ANSWER) - set(scored_for_key(key, ANSWER)) == hidden_in_jobs


def test_a_restricted_key_may_use_what_asks_for_no_more() -> None:
    key = Lab(lab_id="acme", key_id="k", per_minute=None, collections=("a", "b"))
    assert [key.may_use_all(each) for each in (("a",), ("b", "a"), (), ("a", "c"), None)] == [True] * 3 + [False] * 2
    assert lab().may_use_all(None)
    assert lab().may_use_all(("c",))
