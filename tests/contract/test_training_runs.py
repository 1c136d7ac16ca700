"""/training-runs: who may start the learner with what, what is shown of a run, and how it is stopped and deleted.

Nothing trains here: `tests/faults/test_training_runs.py` runs the learner.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from personas.reading.matcher import Matcher
from reward_server.auth.scopes import EVERY, Scope
from reward_server.errors import TrainingUnavailable
from reward_server.server.background import workers_of
from reward_server.settings import Settings
from reward_server.store.job_claims import MAX_ATTEMPTS, ItemLease
from reward_server.store.job_records import TRAIN_POLICY
from reward_server.store.training_records import RunStatus
from reward_server.training import process, service
from scenarios.library import Library
from tests.contract.house import WHERE, Client, House, Json, assert_error, running_house
from tests.store.test_training_runs import a_metric, a_run

ALL = {"scopes": list(EVERY)}
WRONG = {"optim": {"learning_rat": 0.1}}
SERVER = {"collection": WHERE["collection_slug"], "scenario": WHERE["scenario_slug"]}


def resolved(config: Json) -> Json:
    """What the learner would make of it, as far as the server looks at it."""
    server = {**SERVER, "scenarios": [], "held_out": [], **config.get("server", {})}
    algorithm = {"objective": {"kind": "reward"}}
    return {"run": {"updates": 60, **config.get("run", {})}, "server": server, "algorithm": algorithm}


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The learner accepts everything, at once; what it was given."""
    given: list[str] = []

    async def accept(config: str) -> Json:
        given.append(config)
        return resolved(tomllib.loads(config))

    monkeypatch.setattr(process, "check", accept)
    return given


@pytest.fixture
async def operator(house: House) -> AsyncIterator[Client]:
    key = await house.key("acme", **ALL)
    house.end_development_mode()
    async with house.client(key) as client:
        yield client


async def started(client: Client, **fields: Any) -> Json:
    return await client.ok("POST", "/training-runs", fields)


async def stored(house: House, **changes: Any) -> str:
    """A run as it may stand, of the lab acme."""
    row = replace(a_run(), created_at=house.clock.now(), **changes)
    async with house.store.transaction() as unit:
        await unit.training_runs.add(row)
    return row.training_run_id


async def test_a_run_is_queued_and_shown_as_it_was_asked_for(operator: Client, unchecked: list[str]) -> None:
    asked = {"config": {"run": {"updates": 2}}, "name": "first", "metadata": {"try": 1}}
    run = await started(operator, **asked)
    assert run["training_run_id"].startswith("run_")
    assert {name: run[name] for name in asked} == asked
    assert (run["status"], run["step"], run["steps"]) == ("queued", 0, 2)
    assert unchecked == ['"run" = {"updates" = 2}\n']
    read = await operator.ok("GET", f"/training-runs/{run['training_run_id']}")
    [listed] = (await operator.ok("GET", "/training-runs"))["data"]
    assert {**listed, "request_id": read["request_id"]} == read
    assert (await operator.ok("GET", f"/training-runs/{run['training_run_id']}/metrics"))["data"] == []


async def test_an_idempotency_key_starts_one_run(operator: Client, unchecked: list[str]) -> None:
    keyed = {"headers": {"Idempotency-Key": "once"}}
    first, again = [await operator.ok("POST", "/training-runs", {}, **keyed) for _ in range(2)]
    assert first["training_run_id"] == again["training_run_id"]
    assert len(unchecked) == len((await operator.ok("GET", "/training-runs"))["data"]) == 1
    other = await operator.call("POST", "/training-runs", {"name": "other"}, **keyed)
    assert_error(other, 409, "idempotency_mismatch")


@pytest.mark.slow
async def test_the_learner_checks_a_configuration_before_anything_is_kept(operator: Client) -> None:
    refused = await operator.call("POST", "/training-runs", {"config": WRONG})
    data = assert_error(refused, 400, "invalid_request")
    said = "optim.learning_rat: unknown; did you mean 'learning_rate'?"
    assert data["errors"] == [{"loc": ["config"], "msg": said}]
    assert refused.json()["message"] == f"config: {said}"
    assert (await operator.ok("GET", "/training-runs"))["data"] == []
    elsewhere = await operator.call("POST", "/training-runs", {})
    assert_error(elsewhere, 404, "collection_not_found")  # the learner's own scenario is not served here
    run = await started(operator, config={"server": SERVER, "optim": {"learning_rate": 0.1}})
    assert (run["status"], run["steps"]) == ("queued", 60)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("config", "status", "code"),
    [
        ({"server": {"url": "http://10.0.0.1"}}, 400, "invalid_request"),
        ({"model": {"path": "/etc"}}, 400, "invalid_request"),
        ({"data": {"file": "file_" + "a" * 24}}, 404, "file_not_found"),
        ({"server": {"collection": WHERE["collection_slug"], "scenario": "nothing"}}, 404, "scenario_not_found"),
        ({"server": {"scenarios": ["nothing"]}}, 404, "collection_not_found"),
        ({"run": {"seed": None}}, 400, "invalid_request"),
        ({"run": {"seed": 2**63}}, 400, "invalid_request"),
        ([], 400, "invalid_request"),
    ],
)
async def test_what_is_not_the_labs_is_refused(operator: Client, config: Any, status: int, code: str) -> None:
    assert_error(await operator.call("POST", "/training-runs", {"config": config}), status, code)
    assert (await operator.ok("GET", "/training-runs"))["data"] == []


@pytest.mark.usefixtures("unchecked")
async def test_a_key_for_other_collections_trains_on_its_own_alone(house: House) -> None:
    key = await house.key("acme", collections=["front-desk"], **ALL)
    house.end_development_mode()
    async with house.client(key) as client:
        response = await client.call("POST", "/training-runs", {})
        assert_error(response, 403, "forbidden")


@pytest.mark.usefixtures("unchecked")
async def test_metadata_and_open_runs_are_bounded(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_error(await operator.call("POST", "/training-runs", {"metadata": {"a": "x" * 5000}}), 400, "invalid_request")
    monkeypatch.setattr(service, "MOST_OPEN", 1)
    run = await started(operator)
    assert_error(await operator.call("POST", "/training-runs", {}), 429, "too_many_at_once")
    await operator.ok("POST", f"/training-runs/{run['training_run_id']}/stop")
    other = await started(operator)
    resumed = await operator.call("POST", f"/training-runs/{run['training_run_id']}/resume")
    assert_error(resumed, 429, "too_many_at_once")
    assert (await operator.ok("GET", f"/training-runs/{run['training_run_id']}"))["status"] == "stopped"
    assert (await operator.ok("GET", f"/training-runs/{other['training_run_id']}"))["status"] == "queued"


@pytest.mark.usefixtures("unchecked")
async def test_starting_takes_an_operators_key_and_looking_one_for_training(house: House, operator: Client) -> None:
    run = (await started(operator))["training_run_id"]
    changing = [("POST", ""), *(("POST", f"/{run}/{each}") for each in ("stop", "resume")), ("DELETE", f"/{run}")]
    async with house.client(await house.key("acme", scopes=[Scope.TRAIN])) as trainer:
        for method, path in changing:
            assert_error(await trainer.call(method, f"/training-runs{path}"), 403, "insufficient_scope")
        assert (await trainer.ok("GET", f"/training-runs/{run}"))["status"] == "queued"
    async with house.client(await house.key("acme", scopes=[Scope.SCORE])) as scorer:
        assert_error(await scorer.call("GET", f"/training-runs/{run}"), 403, "insufficient_scope")
    actions = [each["action"] for each in (await operator.ok("GET", "/audit"))["data"]]
    assert "POST /training-runs" in actions
    assert "GET /training-runs/{training_run_id}" not in actions


@pytest.mark.usefixtures("unchecked")
async def test_in_development_mode_no_key_is_needed(labs: Client) -> None:
    run = await started(labs)
    assert (await labs.ok("POST", f"/training-runs/{run['training_run_id']}/stop"))["status"] == "stopped"


async def test_training_can_be_turned_off(data: Path, matcher: Matcher, library: Library) -> None:
    async with running_house(data, matcher, library, training_runs="off") as house, house.client() as client:
        refused = await client.call("POST", "/training-runs", {})
        assert_error(refused, 403, "training_unavailable")
        assert "LABS_TRAINING_RUNS=on" in refused.json()["message"]
        assert (await client.ok("GET", "/training-runs"))["data"] == []


def test_in_production_the_operator_has_to_turn_it_on(house: House) -> None:
    runs = house.app.state.services.training_runs
    runs._settings = Settings(production=True)
    with pytest.raises(TrainingUnavailable, match=r"off in production.*LABS_TRAINING_RUNS=on"):
        runs.require_available()
    runs._settings = Settings(production=True, training_runs="on")
    runs.require_available()


async def test_without_the_learner_one_line_says_how_to_install_it(
    labs: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "NEEDED", ("learner", "torch_that_is_not_there"))
    refused = await labs.call("POST", "/training-runs", {})
    assert_error(refused, 403, "training_unavailable")
    assert "torch_that_is_not_there is not installed" in refused.json()["message"]
    assert "pip install" in refused.json()["message"]


@pytest.mark.usefixtures("unchecked")
async def test_a_queued_run_is_stopped_resumed_and_deleted(house: House, operator: Client) -> None:
    run = f"/training-runs/{(await started(operator))['training_run_id']}"
    for _ in range(2):
        stopped = await operator.ok("POST", f"{run}/stop")
        assert (stopped["status"], "finished_at" in stopped) == ("stopped", True)
    for _ in range(2):
        queued = await operator.ok("POST", f"{run}/resume")
        assert (queued["status"], "finished_at" in queued) == ("queued", False)
    assert_error(await operator.call("DELETE", run), 409, "conflict")
    await operator.ok("POST", f"{run}/stop")
    deleted = await operator.ok("DELETE", run)
    assert run.endswith(deleted["training_run_id"])
    assert_error(await operator.call("GET", run), 404, "training_run_not_found")
    async with house.store.reading() as unit:
        assert await unit.jobs.open_ids() == set()


@pytest.mark.parametrize("status", [RunStatus.COMPLETE, RunStatus.FAILED, RunStatus.STOPPED])
async def test_a_run_that_is_over_is_not_stopped_again(house: House, operator: Client, status: RunStatus) -> None:
    error = "no gradient" if status is RunStatus.FAILED else None
    run = await stored(house, status=status, error=error, finished_at=house.clock.now())
    shown = await operator.ok("POST", f"/training-runs/{run}/stop")
    assert (shown["status"], shown.get("error")) == (status.value, error)
    if status is RunStatus.COMPLETE:
        assert_error(await operator.call("POST", f"/training-runs/{run}/resume"), 409, "conflict")
    else:
        resumed = await operator.ok("POST", f"/training-runs/{run}/resume")
        assert (resumed["status"], "error" in resumed) == ("queued", False)


async def test_a_running_run_is_asked_to_stop(house: House, operator: Client) -> None:
    run = await stored(house, status=RunStatus.RUNNING)
    for _ in range(2):
        assert (await operator.ok("POST", f"/training-runs/{run}/stop"))["status"] == "stopping"


@pytest.mark.usefixtures("unchecked")
async def test_a_run_is_no_job_of_the_lab(house: House, operator: Client) -> None:
    run = (await started(operator))["training_run_id"]
    async with house.store.reading() as unit:
        job = await unit.jobs.get("acme", run)
    assert job is not None
    assert (job.type, job.total) == (TRAIN_POLICY, 1)
    assert (await operator.ok("GET", "/jobs"))["data"] == []
    assert_error(await operator.call("GET", f"/jobs/{run}"), 404, "job_not_found")
    assert_error(await operator.call("POST", f"/jobs/{run}/cancel"), 404, "job_not_found")


async def test_the_list_comes_in_pages_and_by_status(house: House, operator: Client) -> None:
    runs = []
    for status in (RunStatus.COMPLETE, RunStatus.FAILED, RunStatus.COMPLETE):
        runs.append(await stored(house, status=status))
        house.clock.advance(timedelta(seconds=1))
    page = await operator.ok("GET", "/training-runs?limit=2")
    rest = await operator.ok("GET", f"/training-runs?limit=2&cursor={page['next_cursor']}")
    assert [each["training_run_id"] for each in page["data"] + rest["data"]] == runs[::-1]
    assert "next_cursor" not in rest
    complete = (await operator.ok("GET", "/training-runs?status=complete"))["data"]
    assert [each["training_run_id"] for each in complete] == [runs[2], runs[0]]
    assert_error(await operator.call("GET", "/training-runs?status=over"), 400, "invalid_request")
    assert_error(await operator.call("GET", "/training-runs?cursor=x"), 400, "invalid_cursor")


async def with_metrics(house: House) -> str:
    run = await stored(house, status=RunStatus.COMPLETE, step=2, reward=0.5)
    async with house.store.transaction() as unit:
        rows = [a_metric(0, "eval"), a_metric(1), a_metric(1, "eval"), a_metric(2, loss=0.25)]
        await unit.training_runs.add_metrics("acme", run, rows)
    return run


def places(body: Json) -> list[tuple[int, str]]:
    return [(each["step"], each["kind"]) for each in body["data"]]


async def test_metrics_come_in_pages_and_after_a_step(house: House, operator: Client) -> None:
    path = f"/training-runs/{await with_metrics(house)}/metrics"
    whole = await operator.ok("GET", path)
    assert places(whole) == [(0, "eval"), (1, "train"), (1, "eval"), (2, "train")]
    assert whole["data"][-1] == {"kind": "train", "step": 2, "loss": 0.25}
    page = await operator.ok("GET", f"{path}?limit=2")
    rest = await operator.ok("GET", f"{path}?limit=2&cursor={page['next_cursor']}")
    assert page["data"] + rest["data"] == whole["data"]
    assert "next_cursor" not in rest
    assert places(await operator.ok("GET", f"{path}?after=1")) == [(2, "train")]


async def test_cursors_are_of_one_list_alone(house: House, operator: Client) -> None:
    own, other = [f"/training-runs/{await with_metrics(house)}/metrics" for _ in range(2)]
    cursor = (await operator.ok("GET", f"{own}?limit=1"))["next_cursor"]
    listed = (await operator.ok("GET", "/training-runs?limit=1"))["next_cursor"]
    for path in (f"{other}?cursor={cursor}", f"{own}?cursor={listed}", f"/training-runs?cursor={cursor}"):
        assert_error(await operator.call("GET", path), 400, "invalid_cursor")
    for query in ("limit=0", "limit=1001", "after=-2", "after=x"):
        assert_error(await operator.call("GET", f"{own}?{query}"), 400, "invalid_request")


async def test_events_bring_the_records_and_the_end(house: House, operator: Client) -> None:
    run = await with_metrics(house)
    response = await operator.call("GET", f"/training-runs/{run}/events")
    assert response.headers["content-type"].startswith("text/event-stream")
    [event] = response.text.strip().split("\n\n")
    name, data = event.split("\n")
    said = json.loads(data.removeprefix("data: "))
    assert name == "event: finished"
    assert (said["status"], said["reward"], len(said["metrics"])) == ("complete", 0.5, 4)
    later = await operator.call("GET", f"/training-runs/{run}/events?after=1")
    assert json.loads(later.text.partition("data: ")[2])["metrics"] == [{"kind": "train", "step": 2, "loss": 0.25}]


async def test_another_labs_runs_are_not_there(house: House, operator: Client) -> None:
    run = await with_metrics(house)
    async with house.client(await house.key("rival", **ALL)) as rival:
        assert (await rival.ok("GET", "/training-runs"))["data"] == []
        for path in ("", "/metrics", "/events"):
            assert_error(await rival.call("GET", f"/training-runs/{run}{path}"), 404, "training_run_not_found")
        for action in ("stop", "resume"):
            response = await rival.call("POST", f"/training-runs/{run}/{action}")
            assert_error(response, 404, "training_run_not_found")
        assert_error(await rival.call("DELETE", f"/training-runs/{run}"), 404, "training_run_not_found")
    assert (await operator.ok("GET", f"/training-runs/{run}"))["status"] == "complete"


@pytest.mark.usefixtures("unchecked")
async def test_a_run_whose_workers_were_all_lost_is_failed_and_can_be_resumed(house: House, operator: Client) -> None:
    await operator.ok("POST", "/webhooks", {"url": "https://8.8.8.8/labs", "events": ["training_run.finished"]})
    run = (await started(operator))["training_run_id"]
    for attempt in range(MAX_ATTEMPTS):
        now = house.clock.now()
        async with house.store.transaction() as unit:
            hold = ItemLease(f"lost-{attempt}", now + timedelta(seconds=15), 1)
            assert (await unit.job_items.claim(hold, [TRAIN_POLICY], now)).claim is not None
        house.clock.advance(timedelta(seconds=20))
    kinds = {TRAIN_POLICY: house.app.state.services.jobs._kinds[TRAIN_POLICY]}
    settings = house.settings.model_copy(update={"training_run_workers": 1})
    usage = house.app.state.services.usage
    [*_, worker] = workers_of(
        store=house.store, kinds=kinds, clock=house.clock, metrics=house.metrics, settings=settings, usage=usage
    )
    await worker.drain()
    failed = await operator.ok("GET", f"/training-runs/{run}")
    assert failed["status"] == "failed"
    assert "stopped in every attempt" in failed["error"]
    assert "/resume" in failed["error"]
    [hook] = (await operator.ok("GET", "/webhooks"))["data"]
    [told] = (await operator.ok("GET", f"/webhooks/{hook['webhook_id']}/deliveries"))["data"]
    assert told["event"] == "training_run.finished"
    resumed = await operator.ok("POST", f"/training-runs/{run}/resume")
    assert (resumed["status"], "error" in resumed) == ("queued", False)
    async with house.store.transaction() as unit:
        now = house.clock.now()
        again = await unit.job_items.claim(ItemLease("again", now + timedelta(seconds=15), 1), [TRAIN_POLICY], now)
    assert again.claim is not None
    assert again.claim.attempts == {0: 1}


async def test_a_run_of_a_key_with_more_collections_is_forbidden_and_not_listed(
    house: House, operator: Client, unchecked: list[str]
) -> None:
    run = await started(operator)
    assert run["training_run_id"]
    async with house.client(await house.key("acme", collections=(WHERE["collection_slug"],), **ALL)) as bikes:
        own = await started(bikes)
        path = f"/training-runs/{run['training_run_id']}"
        for method, rest in (
            ("GET", ""),
            ("GET", "/metrics"),
            ("GET", "/events"),
            ("POST", "/stop"),
            ("POST", "/resume"),
            ("DELETE", ""),
        ):
            assert_error(await bikes.call(method, path + rest), 403, "forbidden")
        assert (await operator.ok("GET", path))["status"] == "queued"
        assert [each["training_run_id"] for each in (await bikes.ok("GET", "/training-runs"))["data"]] == [
            own["training_run_id"]
        ]
        assert len((await operator.ok("GET", "/training-runs"))["data"]) == 2


async def test_a_run_keeps_the_collections_of_its_key_whoever_resumes_it(
    house: House, operator: Client, unchecked: list[str]
) -> None:
    bikes = (WHERE["collection_slug"],)
    async with house.client(await house.key("acme", collections=bikes, **ALL)) as client:
        run_id = (await started(client))["training_run_id"]
        await client.ok("POST", f"/training-runs/{run_id}/stop")
        await operator.ok("POST", f"/training-runs/{run_id}/resume")
        assert (await client.ok("GET", f"/training-runs/{run_id}"))["status"] == "queued"
    async with house.store.reading() as unit:
        job = await unit.jobs.get("acme", run_id)
    assert job is not None
    assert tuple(job.collections or ()) == bikes
