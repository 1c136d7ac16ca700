"""Jobs that train a reward model or fit a calibration: what they make is the lab's, and nobody else's."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from reward_server.jobs import learning
from tests.contract.house import Client, House, Json, assert_error
from tests.contract.model_shop import Shop
from tests.contract.test_jobs import over, results

pytestmark = [pytest.mark.usefixtures("one_encoder"), pytest.mark.slow]

GOOD, BAD = "I am sorry to hear that. Since when has it hurt?", "Drink more coffee."
WAIT_S = 300.0
OWNER = "sv_0123456789ab"


def talks(count: int) -> list[Json]:
    """Labelled conversations: those that ask are worth more."""
    return [
        {
            "messages": [
                {"role": "user", "content": f"My shoulder has hurt since day {number}."},
                {"role": "assistant", "content": GOOD if number % 2 else BAD},
            ],
            "score": (0.9 if number % 2 else 0.1) + number % 5 / 100,
            "group": f"talk-{number // 2}",
        }
        for number in range(count)
    ]


def judged(count: int) -> list[Json]:
    """Rewards that are right more often the higher they are."""
    return [
        {"reward": number / count, "label": int(number % 7 < number * 7 / count), "scoring_version": OWNER}
        for number in range(count)
    ]


async def submitted(labs: Client, job_type: str, rows: list[Json], **fields: object) -> Json:
    return await labs.ok("POST", "/jobs", {"type": job_type, "items": rows, **fields})


async def made(labs: Client, job_type: str, rows: list[Json], **fields: object) -> Json:
    """The one result of such a job."""
    job = await over(labs, await submitted(labs, job_type, rows, **fields), WAIT_S)
    assert (job["status"], job["counts"]["total"], job["progress"]) == ("completed", 1, 1.0)
    [result] = await results(labs, job)
    assert result["status"] == "success", result
    return result


@pytest.fixture
async def rival(house: House, labs: Client) -> AsyncIterator[Client]:
    async with house.client(await house.key("rival")) as client:
        yield client


@pytest.fixture
async def acme(house: House) -> AsyncIterator[Client]:
    async with house.client(await house.key("acme")) as client:
        house.end_development_mode()
        yield client


@pytest.mark.slow
async def test_a_trained_model_is_the_labs_own_and_serves_it_when_asked(
    house: House, acme: Client, rival: Client
) -> None:
    options = {"epochs": 10, "features": "all", "keep_uncertainty": True}
    result = await made(acme, "train_reward_model", talks(60), training=options)
    assert not any("no uncertainty" in note for note in result["notes"])
    assert (result["labelled"], result["heads"]) == (60, ["score"])
    model = result["reward_model_id"]
    assert [each["id"] for each in (await acme.ok("GET", "/reward-models"))["data"]] == [model]
    assert (await rival.ok("GET", "/reward-models"))["data"] == []
    for call in ("POST /activate", "POST /deactivate", "DELETE "):
        method, _, path = call.partition(" ")
        assert_error(await rival.call(method, f"/reward-models/{model}{path}"), 404, "reward_model_not_found")
    assert_error(await acme.call("POST", f"/reward-models/{model}/deactivate"), 404, "reward_model_not_found")
    force = "?force=true" if "unfit" in result else ""
    assert (await acme.ok("POST", f"/reward-models/{model}/activate{force}"))["active"]
    assert_error(await acme.call("DELETE", f"/reward-models/{model}"), 409, "conflict")
    await acme.ok("POST", f"/reward-models/{model}/deactivate")
    await acme.ok("DELETE", f"/reward-models/{model}")
    assert (await acme.ok("GET", "/reward-models"))["data"] == []
    [job] = (await acme.ok("GET", "/jobs"))["data"]
    assert not (house.settings.learning / "labs" / "acme" / job["job_id"]).exists()


async def test_a_calibration_is_the_labs_own(acme: Client, rival: Client) -> None:
    result = await made(acme, "calibrate", judged(200), calibration={"method": "isotonic"})
    assert (result["method"], result["n"], result["scoring_version"]) == ("isotonic", 200, OWNER)
    found = result["calibration_id"]
    assert [each["id"] for each in (await acme.ok("GET", "/calibrations"))["data"]] == [found]
    assert (await rival.ok("GET", "/calibrations"))["data"] == []
    assert_error(await rival.call("DELETE", f"/calibrations/{found}"), 404, "calibration_not_found")
    assert (await acme.ok("DELETE", f"/calibrations/{found}"))["id"] == found
    assert (await acme.ok("GET", "/calibrations"))["data"] == []


async def test_rows_that_cannot_be_used_fail_the_job_with_a_line_that_says_why(acme: Client) -> None:
    rows = [{"reward": 0.5, "label": 1}]
    job = await over(acme, await submitted(acme, "calibrate", rows, calibration={"method": "isotonic"}), WAIT_S)
    assert (job["status"], job["counts"]["failed"]) == ("failed", 1)
    [result] = await results(acme, job)
    assert (result["status"], result["code"]) == ("error", "invalid_request")
    assert "`belongs_to`" in result["message"]
    assert job["error"] == result["message"]
    assert_error(await acme.call("POST", f"/jobs/{job['job_id']}/resume"), 409, "conflict")


async def test_rows_that_train_nothing_fail_the_job(house: House, acme: Client) -> None:
    job = await over(acme, await submitted(acme, "train_reward_model", [{"messages": []}]), WAIT_S)
    assert (job["status"], job["counts"]["done"]) == ("failed", 0)
    assert job["error"] == (await results(acme, job))[0]["message"]
    assert "\n" not in job["error"]
    told = house.metrics.registry.get_sample_value(
        "labs_jobs_finished_total", {"type": "train_reward_model", "status": "failed"}
    )
    assert told == 1


async def test_the_models_of_all_labs_are_the_operators(shop: Shop, acme: Client) -> None:
    shared = shop.add(0.3)
    refused = await acme.call("POST", f"/reward-models/{shared}/activate")
    assert_error(refused, 403, "insufficient_scope")
    assert_error(await acme.call("DELETE", f"/reward-models/{shared}"), 404, "reward_model_not_found")


@pytest.mark.parametrize(
    "body",
    [
        {"type": "calibrate"},
        {"type": "calibrate", "calibration": {"method": "magic"}},
        {"type": "calibrate", "calibration": {"method": "isotonic", "belongs_to": "me"}},
        {"type": "calibrate", "calibration": {"method": "isotonic", "scale": [1, 0]}},
        {"type": "evaluate", "training": {"epochs": 3}},
        {"type": "train_reward_model", "training": {"epochs": 0}},
        {"type": "train_reward_model", "training": {"held_out": 0.9}},
    ],
)
async def test_options_that_mean_nothing_are_refused(labs: Client, body: Json) -> None:
    assert_error(await labs.call("POST", "/jobs", {"items": [{}], **body}), 400, "invalid_request")


async def test_a_lab_keeps_no_more_than_it_may(labs: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "MOST_KEPT", 0)
    body = {"type": "train_reward_model", "items": talks(2)}
    assert_error(await labs.call("POST", "/jobs", body), 429, "storage_exhausted")
