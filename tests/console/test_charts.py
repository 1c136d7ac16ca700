"""Charts: dimensions are drawn, and those that are not are counted. In process."""

from __future__ import annotations

import pytest

from tests.console.test_admission import visiting
from tests.contract.conftest import data, empty_database, house, library, matcher
from tests.contract.house import House
from tests.store.builders import a_turn, after_a_turn, an_episode

__all__ = ["data", "empty_database", "house", "library", "matcher"]


async def scored(house: House, scores: dict[str, float]) -> None:
    """An episode of one turn that has these scores."""
    made = an_episode(lab_id="development", collection="bike-shop", scenario="flat-tyre")
    played = after_a_turn(made)
    async with house.store.transaction() as unit:
        await unit.episodes.add(made)
        await unit.episodes.append_turn(played, a_turn(played, scores=scores))


@pytest.mark.parametrize(
    ("count", "told"), [(8, None), (9, "1 more dimension is not drawn"), (12, "4 more dimensions are not drawn")]
)
async def test_dimensions_that_are_not_drawn_are_counted(house: House, count: int, told: str | None) -> None:
    names = [f"D{number % 6 + 1}_Name{chr(65 + number)}" for number in range(count)]
    await scored(house, dict.fromkeys(names, 0.5))
    await scored(house, {names[-1]: 0.5})
    async with visiting(house) as browser:
        page = (await browser.get("/charts")).text
    assert page.count('aria-label="Histogram of Name') == 8
    assert f"Histogram of Name {names[-1][-1]}" in page  # most episodes have it
    assert ("not drawn" in page) is (told is not None)
    assert told is None or told in page
