"""What pages tell a newcomer: what spoils a game, and what fills a table that is empty. In process."""

from __future__ import annotations

from tests.console.test_admission import visiting
from tests.contract.conftest import data, empty_database, house, library, matcher
from tests.contract.house import House

__all__ = ["data", "empty_database", "house", "library", "matcher"]


async def test_what_spoils_a_game_says_so_until_it_is_over(house: House) -> None:
    async with house.client() as labs, visiting(house) as browser:
        episode = await labs.create()
        await labs.say(episode, "How did it happen?")
        play = f"/play/{episode['episode_id']}"
        playing = (await browser.get(play)).text
        assert "Understood wrongly? (spoils the game)" in playing
        assert playing.count("spoils the game") == 2
        await browser.post(f"{play}/end")
        over = (await browser.get(play)).text
        assert "Why this reward?" in over
        assert "spoils the game" not in over


async def test_an_empty_leaderboard_names_commands_that_fill_it(house: House) -> None:
    async with visiting(house) as browser:
        page = (await browser.get("/leaderboard?collection=bike-shop")).text
    assert "agents add" in page
    assert "agents evaluate agent_… bike-shop" in page
    assert "evaluate_agent" not in page
