"""What a plan is sized for."""

from __future__ import annotations

import pytest

from reward_server.auth.lab import Plan
from tests.contract.house import WHERE, House

EPISODES, TURNS = 64, 12


@pytest.mark.slow
async def test_a_standard_plan_has_room_for_64_episodes_of_12_turns(house: House) -> None:
    """13 requests of the 60 a minute, and the text of 768 turns; an episode that completes early is begun again."""
    key = await house.key("acme", plan=Plan.STANDARD, rate_per_minute=None)
    house.end_development_mode()
    played = 0
    async with house.client(key) as client:
        group = {**WHERE, "count": EPISODES}
        while played < EPISODES * TURNS:
            begun = (await client.ok("POST", "/batch/episodes", group))["episodes"]
            open_ones = [each["episode_id"] for each in begun]
            for turn in range(TURNS):
                said = f"And what else should I know about that, number {turn}? " + "Take your time, please. " * 20
                items = [{"episode_id": each, "messages": [{"role": "user", "content": said}]} for each in open_ones]
                results = (await client.ok("POST", "/batch/turns", {"items": items}))["results"]
                played += sum("reward" in each for each in results)
                open_ones = [each["episode_id"] for each in results if each.get("episode_complete") is False]
                if not open_ones or played >= EPISODES * TURNS:
                    break
        used = await client.ok("GET", "/usage")
    assert used["data"][0]["turns"] >= EPISODES * TURNS
    assert used["data"][0]["requests"] <= 60
