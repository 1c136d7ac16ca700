"""Several optimiser steps are one pass over the episodes, cut up; not as many passes over all of them."""

from __future__ import annotations

from typing import Any

import pytest

from learner.examples import split


@pytest.mark.parametrize("parts", [1, 3, 4, 16, 40])
def test_every_example_is_in_exactly_one_step(parts: int) -> None:
    examples: Any = list(range(16))
    steps = split(examples, parts)
    assert len(steps) == min(parts, 16)
    assert sorted(example for step in steps for example in step) == examples
    assert max(map(len, steps)) - min(map(len, steps)) <= 1
