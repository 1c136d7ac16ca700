"""A model that is activated while something is being scored: what has begun ends with the model it began with."""

from __future__ import annotations

import asyncio

import pytest

from reward_server.scoring.scorer import TRANSCRIPTS_PER_JOB
from tests.contract.house import WHERE, Client, House, Json
from tests.contract.model_shop import COMPOSITE, Shop
from tests.contract.test_evaluate import GOOD, body

pytestmark = pytest.mark.usefixtures("one_encoder")

FIRST, SECOND = 0.3, 0.6
ITEMS = 3 * TRANSCRIPTS_PER_JOB
"""More than are begun at once, so that most of a batch has not begun when the model changes."""


def a_talk(number: int) -> list[Json]:
    return [*GOOD, {"role": "assistant", "content": f"See you on Friday, number {number}."}]


def a_batch() -> Json:
    """Half of it asks for the model's reward, half for the rubric's."""
    models = (({"reward_config": COMPOSITE} if index % 2 == 0 else {}) for index in range(ITEMS))
    return {"items": [{"id": str(index), **body(a_talk(index), **more)} for index, more in enumerate(models)]}


def learned(batch: Json) -> set[float]:
    """The rewards that the model made; no item may have failed."""
    assert [each["status"] for each in batch["results"]] == ["success"] * ITEMS
    return {each["reward"] for each in batch["results"][::2]}


def versions(batch: Json) -> set[str]:
    return {each["scoring_version"] for each in batch["results"]}


async def kept_versions(house: House) -> list[str]:
    async with house.store.reading() as work:
        return [row.scoring_version for row in await work.evaluations.of()]


@pytest.mark.slow
async def test_a_batch_is_scored_by_the_model_it_began_with(labs: Client, house: House, shop: Shop) -> None:
    first, second = shop.add(FIRST), shop.add(SECOND)
    await labs.ok("POST", f"/reward-models/{first}/activate")
    house.matcher.close()
    working = asyncio.create_task(labs.ok("POST", "/batch/evaluate", a_batch()))
    await house.matcher.somebody_waits()
    assert (await labs.ok("POST", f"/reward-models/{second}/activate"))["active"] is True
    house.matcher.open()
    under_way = await working
    assert learned(under_way) == {FIRST}
    assert versions(under_way) == {under_way["scoring_version"]}
    assert await kept_versions(house) == [under_way["scoring_version"]] * ITEMS

    after = await labs.ok("POST", "/batch/evaluate", a_batch())
    assert learned(after) == {SECOND}
    assert versions(after) == {after["scoring_version"]} != versions(under_way)
    rubric = [[each["reward"] for each in batch["results"][1::2]] for batch in (under_way, after)]
    assert rubric[0] == rubric[1]


async def test_both_sides_of_a_comparison_are_scored_by_one_model(labs: Client, house: House, shop: Shop) -> None:
    first, second = shop.add(FIRST), shop.add(SECOND)
    await labs.ok("POST", f"/reward-models/{first}/activate")
    house.matcher.close()
    sides = {f"response_{side}": {"messages": a_talk(number)} for number, side in enumerate("ab")}
    working = asyncio.create_task(labs.ok("POST", "/compare", {**WHERE, **sides, "reward_config": COMPOSITE}))
    await house.matcher.somebody_waits()
    await labs.ok("POST", f"/reward-models/{second}/activate")
    house.matcher.open()
    compared = await working
    assert (compared["reward_a"], compared["reward_b"], compared["winner"]) == (FIRST, FIRST, "tie")


@pytest.mark.slow
async def test_batches_and_activations_at_the_same_time_never_mix(labs: Client, shop: Shop) -> None:
    models = {shop.add(value): value for value in (FIRST, SECOND)}
    alone: dict[str, float] = {}
    for model, value in models.items():
        await labs.ok("POST", f"/reward-models/{model}/activate")
        alone[(await labs.ok("POST", "/evaluate", body(reward_config=COMPOSITE)))["scoring_version"]] = value

    async def activate() -> None:
        for _ in range(6):
            for model in models:
                await labs.ok("POST", f"/reward-models/{model}/activate")

    switching = asyncio.create_task(activate())
    for batch in await asyncio.gather(*(labs.ok("POST", "/batch/evaluate", a_batch()) for _ in range(6))):
        assert learned(batch) == {alone[batch["scoring_version"]]}
        assert versions(batch) == {batch["scoring_version"]}
    await switching
