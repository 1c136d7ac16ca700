"""A lab's own reward models and calibrations: nobody else sees them or is served by them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from reward_server.auth.scopes import EVERY
from reward_server.ownership import of_lab
from reward_server.reward_models.calibration import Calibration, save
from tests.contract.house import Client, House, assert_error
from tests.contract.model_shop import COMPOSITE, Shop
from tests.contract.test_calibrations import fitted, with_calibration
from tests.contract.test_evaluate import body

pytestmark = pytest.mark.usefixtures("one_encoder")


@dataclass
class Labs:
    """Two labs, each with an operator's key."""

    acme: Client
    rival: Client


@pytest.fixture
async def both(house: House) -> AsyncIterator[Labs]:
    keys = [await house.key(lab_id, scopes=EVERY) for lab_id in ("acme", "rival")]
    house.end_development_mode()
    async with house.client(keys[0]) as acme, house.client(keys[1]) as rival:
        yield Labs(acme, rival)


def of_acme(shop: Shop, value: float) -> str:
    """A model that is the lab's own."""
    shared = shop.registry
    own = shared.of("acme")
    assert own is not None
    shop.registry = own
    try:
        return shop.add(value)
    finally:
        shop.registry = shared


async def rewarded(client: Client) -> float | None:
    """What the learned model gives, or None where there is none."""
    response = await client.call("POST", "/evaluate", body(reward_config=COMPOSITE))
    if response.status_code == 400:
        assert_error(response, 400, "invalid_reward_config")
        return None
    reward: float = response.json()["reward"]
    return reward


async def listed(client: Client) -> dict[str, bool]:
    return {each["id"]: each["active"] for each in (await client.ok("GET", "/reward-models"))["data"]}


async def test_a_labs_own_model_serves_it_alone(both: Labs, shop: Shop) -> None:
    own, shared = of_acme(shop, 0.3), shop.add(0.6)
    assert await listed(both.acme) == {own: False, shared: False}
    assert await listed(both.rival) == {shared: False}

    refused = await both.rival.call("POST", f"/reward-models/{own}/activate")
    assert_error(refused, 404, "reward_model_not_found")
    assert (await both.acme.ok("POST", f"/reward-models/{own}/activate"))["active"]
    assert await rewarded(both.acme) == 0.3
    assert await rewarded(both.rival) is None

    await both.rival.ok("POST", f"/reward-models/{shared}/activate")
    assert (await rewarded(both.acme), await rewarded(both.rival)) == (0.3, 0.6)
    assert await listed(both.acme) == {own: True, shared: False}
    assert await listed(both.rival) == {shared: True}

    await both.acme.ok("POST", f"/reward-models/{shared}/activate")
    assert (await rewarded(both.acme), await rewarded(both.rival)) == (0.6, 0.6)


async def test_the_scoring_version_of_others_stays(both: Labs, shop: Shop) -> None:
    before = (await both.rival.ok("POST", "/evaluate", body()))["scoring_version"]
    await both.acme.ok("POST", f"/reward-models/{of_acme(shop, 0.3)}/activate")
    assert (await both.rival.ok("POST", "/evaluate", body()))["scoring_version"] == before


def move_to_acme(house: House, calibration: Calibration) -> None:
    folder = of_lab(house.settings.calibrations, "acme")
    assert folder is not None
    (house.settings.calibrations / f"{calibration.id}.json").unlink()
    save(calibration, folder)


async def test_a_labs_own_calibration_is_unknown_to_others(both: Labs, house: House) -> None:
    calibration = fitted(house)
    move_to_acme(house, calibration)
    assert [each["id"] for each in (await both.acme.ok("GET", "/calibrations"))["data"]] == [calibration.id]
    assert (await both.rival.ok("GET", "/calibrations"))["data"] == []
    result = await both.acme.ok("POST", "/evaluate", with_calibration(calibration.id))
    assert result["metadata"]["calibration_id"] == calibration.id
    refused = await both.rival.call("POST", "/evaluate", with_calibration(calibration.id))
    assert_error(refused, 400, "invalid_reward_config")


async def test_what_a_lab_learned_goes_with_its_data(both: Labs, house: House, shop: Shop) -> None:
    calibration, shared = fitted(house), shop.add(0.6)
    move_to_acme(house, calibration)
    await both.acme.ok("POST", f"/reward-models/{of_acme(shop, 0.3)}/activate")
    assert await rewarded(both.acme) == 0.3
    deleted = (await both.rival.ok("DELETE", "/labs/acme/data"))["deleted"]
    assert (deleted["reward_model"], deleted["calibration"]) == (1, 1)
    assert await listed(both.acme) == await listed(both.rival) == {shared: False}
    assert (await both.acme.ok("GET", "/calibrations"))["data"] == []
    assert await rewarded(both.acme) is None
