"""Patterns run in linear time, and those that cannot are refused."""

from __future__ import annotations

import pytest

from trainer_client.rewards import RegexReward


def test_a_pattern_is_found_in_the_agents_turns_alone() -> None:
    talk = [{"role": "user", "content": "4711"}, {"role": "assistant", "content": "Order 12, then."}]
    assert RegexReward(r"\b\d{4}\b")(talk) == 0.0
    assert RegexReward(r"\b\d{2}\b")(talk) == 1.0
    assert RegexReward(r"\b\d{4}\b", invert=True)(talk) == 1.0


def test_a_pattern_that_would_backtrack_takes_no_time() -> None:
    """Python's own engine takes 2^200 steps for this one: the test would never end."""
    assert RegexReward(r"(a+)+$")([{"role": "assistant", "content": "a" * 200 + "b"}]) == 0.0


@pytest.mark.parametrize("pattern", [r"(a)\1", "(?=a)b", "(", "a" * 1001])
def test_what_is_not_linear_or_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="pattern"):
        RegexReward(pattern)
