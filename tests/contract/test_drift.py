"""GET /drift: what a lab's own rewards did."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.contract.house import COLLECTION, SCENARIO, WHERE, Client, House, assert_error
from tests.store.builders import NOW, an_evaluation

VERSION = "sv_0123456789ab"


async def stored(house: House, rewards: list[float], lab_id: str = "development", **fields: object) -> None:
    rows = [
        replace(
            an_evaluation(reward=reward, lab_id=lab_id, created_at=NOW + timedelta(seconds=number), **fields),
            evaluation_id=f"ev_{lab_id}{len(fields)}{number}",
            collection=COLLECTION,
            scenario=SCENARIO,
        )
        for number, reward in enumerate(rewards)
    ]
    async with house.store.transaction() as unit:
        await unit.evaluations.add_many(rows)


async def test_the_latest_rewards_are_set_against_those_before(house: House, labs: Client) -> None:
    assert (await labs.ok("GET", "/drift"))["data"] == []
    await stored(house, [0.2, 0.4] * 150 + [0.6] * 100)
    await stored(house, [0.9] * 400, lab_id="rival")
    [found] = (await labs.ok("GET", "/drift"))["data"]
    assert (found["scenario_slug"], found["scoring_version"]) == (SCENARIO, VERSION)
    assert (found["latest"]["n"], found["before"]["n"]) == (100, 300)
    assert found["before"]["mean"] == pytest.approx(0.3)
    assert found["drift"] == pytest.approx(3.0)


async def test_few_rewards_say_nothing_of_drift(house: House, labs: Client) -> None:
    await stored(house, [0.5] * 299)
    await stored(house, [0.1] * 50, reward_config={"skip_safety_gate": True})
    [found] = (await labs.ok("GET", f"/drift?collection_slug={WHERE['collection_slug']}"))["data"]
    assert (found["before"]["n"], "drift" in found) == (199, False)


async def test_a_collection_has_to_be_there_and_open_to_the_key(house: House, labs: Client) -> None:
    assert_error(await labs.call("GET", "/drift?collection_slug=nowhere"), 404, "collection_not_found")
    async with house.client(await house.key(collections=("front-desk",))) as bound:
        house.end_development_mode()
        assert_error(await bound.call("GET", f"/drift?collection_slug={COLLECTION}"), 403, "forbidden")
