"""Jobs of a lab that has used up its day wait for the next one, say so, and lose nothing."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from benchmarks.scripted_provider import ScriptedProvider
from reward_server.auth.scopes import EVERY
from reward_server.jobs.evaluate import EvaluateItems
from reward_server.store.records import LabLimitsRow
from tests.contract.house import WHERE, Client, House, Json, assert_error
from tests.contract.test_jobs import TALK, WAIT_S, over, results, submit
from tests.contract.test_llm_judges import ASKS, WORDS, Door, attentive, evaluation, judged, kind_only, server

pytestmark = pytest.mark.slow

__all__ = ("judged", "server")  # fixtures
SLICE = EvaluateItems.slice_size


async def resting(labs: Client, job: Json, done: int = 0) -> Json:
    """The job as soon as it waits for the next day with so many items done."""
    async with asyncio.timeout(WAIT_S):
        while True:
            found = await labs.ok("GET", f"/jobs/{job['job_id']}")
            if "waits_for" in found and found["counts"]["done"] == done:
                return found
            await asyncio.sleep(0.05)


async def test_a_job_waits_for_the_next_day_and_goes_on_with_it(house: House) -> None:
    operator = await house.key("mine", scopes=EVERY)
    key = await house.key("acme")
    house.end_development_mode()
    async with house.client(operator) as boss, house.client(key) as labs:
        await boss.ok("PATCH", "/labs/acme", {"limits": {"characters_per_day": 1}})
        job = await submit(labs, *({**WHERE, "messages": TALK} for _ in range(2 * SLICE + 1)))
        found = await resting(labs, job, SLICE)
        assert (found["status"], found["waits_for"]) == ("queued", "compute_exhausted")
        assert found["waits_until"] == "2026-01-02T00:00:00.000Z"
        assert_error(await labs.call("POST", "/evaluate", {**WHERE, "messages": TALK}), 429, "compute_exhausted")
        # Looked at again, it still waits for the same midnight, and nothing was begun.
        house.clock.advance(timedelta(minutes=6))
        await looked_at(house, job, "acme")
        assert (await resting(labs, job, SLICE))["waits_until"] == found["waits_until"]
        house.clock.advance(timedelta(hours=23, minutes=54))
        found = await resting(labs, job, 2 * SLICE)
        assert found["waits_until"] == "2026-01-03T00:00:00.000Z"
        # The operator gives the lab more: nobody waits for midnight then.
        await boss.ok("PATCH", "/labs/acme", {"limits": {}})
        house.clock.advance(timedelta(minutes=5))
        finished = await over(labs, job)
        assert (finished["status"], finished["counts"]["done"]) == ("completed", 2 * SLICE + 1)
        assert "waits_for" not in finished
        assert len(await results(labs, job)) == 2 * SLICE + 1


async def test_a_job_that_waits_can_be_cancelled(house: House) -> None:
    key = await house.key("acme")
    house.end_development_mode()
    await house.app.state.services.tenants.change("acme", limits=LabLimitsRow(characters_per_day=1))
    async with house.client(key) as labs:
        job = await submit(labs, *({**WHERE, "messages": TALK} for _ in range(SLICE + 1)))
        await resting(labs, job, SLICE)
        cancelled = await labs.ok("POST", f"/jobs/{job['job_id']}/cancel")
        assert cancelled["status"] == "cancelled"
        assert "waits_for" not in cancelled


async def test_items_wait_for_the_budget_of_language_models_and_are_never_dead(server: Door) -> None:
    with ScriptedProvider(attentive(kind_only)) as provider:
        async with server(provider, llm_daily_tokens=10**6) as house, house.client() as labs:
            await house.spend(10**6)
            job = await submit(labs, evaluation(), {"id": "no messages", **WHERE})
            await resting(labs, job)
            read = set()
            watching = asyncio.create_task(watched(labs, job))
            for _ in range(6):  # more often than an item is tried
                found = await resting(labs, job)
                read.add((await labs.ok("GET", "/usage"))["data"][0]["characters"])
                assert found["waits_for"] == "budget_exhausted"
                # The item that costs nothing has its outcome.
                assert found["counts"] == {"total": 2, "done": 0, "failed": 1, "dead": 0, "remaining": 1}
                house.clock.advance(timedelta(minutes=5))
                await looked_at(house, job)
            assert not watching.done(), watching.exception()
            watching.cancel()
            assert provider.asked == []
            assert len(read) == 1  # to look at it again costs the lab nothing
            await house.app.state.services.tenants.change("development", limits=LabLimitsRow(tokens_per_day=10**9))
            house.clock.advance(timedelta(minutes=5))
            assert (await over(labs, job))["counts"]["done"] == 1


async def watched(labs: Client, job: Json) -> None:
    """Until it is cancelled: never does the job read as one that is being done."""
    while True:
        found = await labs.ok("GET", f"/jobs/{job['job_id']}")
        assert (found["status"], found.get("waits_for"), found.get("eta_s")) == ("queued", "budget_exhausted", None)


async def test_what_no_day_has_room_for_is_dead_at_once_and_holds_up_nothing(server: Door) -> None:
    numbers = {"role": "assistant", "content": f"{ASKS} {' '.join(map(str, range(2200)))}"}
    long = [*WORDS, numbers, WORDS[0], numbers, WORDS[2]]
    with ScriptedProvider(attentive(kind_only)) as provider:
        async with server(provider, llm_daily_tokens=8000) as house, house.client() as labs:
            job = await over(labs, await submit(labs, evaluation(long), evaluation(), evaluation()))
            assert job["counts"] == {"total": 3, "done": 2, "failed": 0, "dead": 1, "remaining": 0}
            dead, *fine = await results(labs, job)
            assert (dead["status"], dead["code"]) == ("error", "budget_too_small")
            assert "tokens_per_day is 8,000. Send less text, or have the operator raise the limit." in dead["message"]
            assert not {"reward", "scores"} & dead.keys()
            assert all("reward" in each for each in fine)
            # The limit is raised: a retry gives it the reward that the call itself gives.
            await house.app.state.services.tenants.change("development", limits=LabLimitsRow(tokens_per_day=10**6))
            await labs.ok("POST", f"/jobs/{job['job_id']}/retry")
            again = await over(labs, job)
            assert (again["counts"]["done"], again["counts"]["dead"]) == (3, 0)
            alone = await labs.ok("POST", "/evaluate", evaluation(long))
            assert (await results(labs, job))[0]["reward"] == alone["reward"]


async def test_a_conversation_whose_questions_come_to_more_than_a_day_gets_further_each_day(server: Door) -> None:
    with ScriptedProvider(attentive(kind_only)) as provider:
        # Room for either of its two questions, not for both at once.
        async with server(provider, llm_daily_tokens=3000) as house, house.client() as labs:
            job = await submit(labs, evaluation())
            await resting(labs, job)
            house.clock.advance(timedelta(days=1))
            assert (await over(labs, job))["counts"]["done"] == 1
            assert len(provider.asked) == 2  # what was decided on the first day was kept


async def looked_at(house: House, job: Json, lab_id: str = "development") -> None:
    """Until a worker has taken the job again and put it off."""
    async with asyncio.timeout(WAIT_S):
        while True:
            async with house.store.reading() as unit:
                row = await unit.jobs.get(lab_id, job["job_id"])
            if row is not None and row.rests_until is not None and row.rests_until > house.clock.now():
                return
            await asyncio.sleep(0.02)


async def test_what_is_scored_again_counts_as_read(labs: Client) -> None:
    async def read() -> int:
        return int((await labs.ok("GET", "/usage"))["data"][0]["characters"])

    spoken = sum(len(message["content"]) for message in TALK)
    await labs.ok("POST", "/evaluate", {**WHERE, "messages": TALK})
    await labs.say(await labs.create(), TALK[1]["content"])
    for source, least in (("evaluations", spoken), ("episodes", len(TALK[1]["content"]))):
        before = await read()
        await over(labs, await labs.ok("POST", "/jobs", {"type": "rescore", "source": source}))
        line = len('{"evaluation_id":"ev_3suhgaykq2vmmkoxxsqq5xnv"}')
        assert await read() - before > line + least


async def test_all_rows_of_a_calibration_count_as_read(labs: Client) -> None:
    rows = [{"reward": 0.5, "label": 1}] * 400
    before = (await labs.ok("GET", "/usage"))["data"][0]["characters"]
    body = {"type": "calibrate", "items": rows, "calibration": {"method": "isotonic"}}
    await over(labs, await labs.ok("POST", "/jobs", body), 2 * WAIT_S)
    after = (await labs.ok("GET", "/usage"))["data"][0]["characters"]
    assert after - before >= 400 * len('{"reward":0.5,"label":1}')
