"""Only patterns that cannot be made to run for long are accepted."""

from __future__ import annotations

import pytest

from scenarios.patterns import MAX_PATTERN_CHARACTERS, pattern_problem


@pytest.mark.parametrize(
    "pattern",
    [
        r"\bhow (are|is|do)\b",
        r"\b(inspect|check)\b.{0,60}\b(brake|pads)\b.{0,40}today",
        r"\$?\d+(\.\d+)?",
        r"refund\w*\b.*today",
        r"(?:really |very ){0,3}sorry",
        r"(?<!not )covered",
        r"[a-z]{2}\d{4}",
    ],
)
def test_ordinary_patterns_are_accepted(pattern: str) -> None:
    assert pattern_problem(pattern) is None


@pytest.mark.parametrize(
    ("pattern", "word"),
    [
        (r"(a+)+b", "repeat"),
        (r"(?:\w+\s+){0,3}x", "repeat"),
        (r"(?:a|ab)*c", "repeat"),
        (r"(a?b?)*c", "repeat"),
        (r"((ab){2,}x)*y", "repeat"),
        (r"(?=(\w+)*x)y", "repeat"),
        (r"a.*b.*c", "unbounded"),
        (r"[^.]*a[^.]*b", "unbounded"),
        (r"(\w)\1", "back-reference"),
        (r"(?P<x>a)(?P=x)", "back-reference"),
        (r"(unclosed", "compile"),
        (r"a{2,1}", "compile"),
        (r"a|", "empty"),
        (r"x*", "empty"),
        ("a" * (MAX_PATTERN_CHARACTERS + 1), "longer"),
    ],
)
def test_dangerous_or_broken_patterns_are_refused(pattern: str, word: str) -> None:
    problem = pattern_problem(pattern)
    assert problem is not None
    assert word in problem
