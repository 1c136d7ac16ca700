"""/files and /jobs: uploads, background scoring, results, following, cancelling."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from reward_server.errors import JudgeFailed
from reward_server.ids import new_evaluation_id
from tests.contract.house import COLLECTION, WHERE, Client, House, Json, assert_error

pytestmark = pytest.mark.one_house

TALK = [
    {"role": "user", "content": "Hello, my bike has a flat tyre."},
    {"role": "assistant", "content": "Good morning. How did it happen?"},
    {"role": "user", "content": "I rode over broken glass behind the station."},
]
WAIT_S = 60.0


def jsonl(*lines: object) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


async def upload(labs: Client, *lines: object, name: str = "a.jsonl") -> Json:
    return await labs.ok("POST", f"/files?name={name}", content=jsonl(*lines))


async def submit(labs: Client, *items: Json, **fields: Any) -> Json:
    return await labs.ok("POST", "/jobs", {"type": "evaluate", "items": list(items)} | fields)


async def over(labs: Client, job: Json, wait_s: float = WAIT_S) -> Json:
    """The job once nobody works on it any more."""
    async with asyncio.timeout(wait_s):
        while True:
            found = await labs.ok("GET", f"/jobs/{job['job_id']}")
            if found["status"] not in ("queued", "running"):
                return found
            await asyncio.sleep(0.05)


async def results(labs: Client, job: Json, query: str = "") -> list[Json]:
    response = await labs.call("GET", f"/jobs/{job['job_id']}/results{query}")
    assert response.status_code == 200
    return [json.loads(line) for line in response.text.splitlines()]


# --- evaluate -------------------------------------------------------------------------------------


async def test_a_job_over_a_file_scores_every_line_as_evaluate_does(labs: Client) -> None:
    alone = await labs.ok("POST", "/evaluate", {**WHERE, "messages": TALK})
    file = await upload(labs, *({**WHERE, "id": f"talk-{n}", "messages": TALK} for n in range(40)))
    assert (file["lines"], file["name"]) == (40, "a.jsonl")
    job = await labs.ok("POST", "/jobs", {"type": "evaluate", "file_id": file["file_id"]})
    assert job["counts"] == {"total": 40, "done": 0, "failed": 0, "dead": 0, "remaining": 40}
    finished = await over(labs, job)
    assert (finished["status"], finished["progress"], finished["counts"]["done"]) == ("completed", 1.0, 40)
    found = await results(labs, job)
    assert [line["id"] for line in found] == [f"talk-{n}" for n in range(40)]
    assert {line["reward"] for line in found} == {alone["reward"]}
    assert len({line["evaluation_id"] for line in found}) == 40
    kept = await labs.ok("GET", f"/evaluations/{found[0]['evaluation_id']}")
    assert (kept["source"], kept["reward"], kept["scoring_version"]) == (
        "job",
        alone["reward"],
        alone["scoring_version"],
    )
    assert (await results(labs, job, "?after=37")) == found[38:]


async def test_what_a_job_read_and_scored_is_in_the_labs_usage(labs: Client) -> None:
    before = (await labs.ok("GET", "/usage"))["data"][0]
    await over(labs, await submit(labs, *({**WHERE, "messages": TALK} for _ in range(3))))
    after = (await labs.ok("GET", "/usage"))["data"][0]
    assert after["evaluations"] - before["evaluations"] == 3
    assert after["characters"] - before["characters"] > 3 * len(TALK[1]["content"])


async def test_what_lines_leave_out_is_the_jobs(labs: Client) -> None:
    job = await submit(labs, {"messages": TALK}, **WHERE)
    assert (await over(labs, job))["counts"]["done"] == 1
    [line] = await results(labs, job)
    assert (line["index"], line["id"], line["status"]) == (0, "0", "success")


async def test_a_bad_line_is_an_error_and_the_others_are_scored(labs: Client) -> None:
    file = await labs.ok("POST", "/files", content=jsonl({**WHERE, "messages": TALK}) + b"no json\n\n[1]\n" + jsonl({}))
    job = await labs.ok("POST", "/jobs", {"type": "evaluate", "file_id": file["file_id"]})
    assert (await over(labs, job))["counts"] == {"total": 4, "done": 1, "failed": 3, "dead": 0, "remaining": 0}
    found = await results(labs, job)
    assert [line["status"] for line in found] == ["success", "error", "error", "error"]
    assert {line["code"] for line in found[1:]} == {"invalid_request"}
    assert not any("reward" in line for line in found[1:])


@pytest.mark.parametrize("kind", ["evaluate", "compare", "rescore"])
async def test_a_line_may_hold_as_many_values_as_a_request(labs: Client, kind: str) -> None:
    file = await upload(labs, {"messages": [{}] * 50_000})
    job = await labs.ok("POST", "/jobs", {"type": kind, "file_id": file["file_id"]})
    assert (await over(labs, job))["counts"]["failed"] == 1
    [line] = await results(labs, job)
    assert (line["code"], line["message"]) == ("invalid_request", "The body contains too many values.")


async def test_a_judge_that_failed_is_asked_again_and_never_a_number(house: House, labs: Client) -> None:
    house.failure = lambda request: JudgeFailed()
    job = await submit(labs, {**WHERE, "messages": TALK})
    async with asyncio.timeout(WAIT_S):
        while True:
            if house.scored:
                break
            await asyncio.sleep(0.01)
    assert await results(labs, job) == []
    house.failure = lambda request: None
    later(house)
    assert (await over(labs, job))["counts"]["done"] == 1


@pytest.mark.slow
async def test_dead_items_are_told_and_taken_again_when_asked(house: House, labs: Client) -> None:
    house.failure = lambda request: JudgeFailed()
    job = await submit(labs, {**WHERE, "messages": TALK}, {**WHERE, "messages": TALK[:2]})
    async with asyncio.timeout(WAIT_S):
        while (found := await labs.ok("GET", f"/jobs/{job['job_id']}"))["counts"]["dead"] < 2:
            later(house)
            await asyncio.sleep(0.05)
    assert found["status"] == "failed"
    [message] = {line["message"] for line in await results(labs, job)}
    assert found["error"] == f"None of the 2 items has a result; the last to end: {message}"
    assert {line["code"] for line in await results(labs, job)} == {"judge_failed"}
    house.failure = lambda request: None
    again = await labs.ok("POST", f"/jobs/{job['job_id']}/retry")
    assert again["counts"]["dead"] == 0
    assert again["status"] in ("queued", "running")
    assert "error" not in again
    assert (await over(labs, job))["counts"]["done"] == 2
    assert_error(await labs.call("POST", f"/jobs/{job['job_id']}/retry"), 409, "conflict")


def later(house: House) -> None:
    """Past whatever an item waits for before its next attempt."""
    house.clock.advance(timedelta(minutes=2))


# --- compare, rescore -----------------------------------------------------------------------------


async def test_a_job_compares_pairs_as_compare_does(labs: Client) -> None:
    pair = {
        **WHERE,
        "response_a": {"messages": TALK},
        "response_b": {"messages": [{"role": "assistant", "content": "Hello."}]},
    }
    alone = await labs.ok("POST", "/compare", pair)
    job = await submit(labs, {"id": "p", **pair}, {"response_a": 1}, type="compare")
    assert (await over(labs, job))["counts"] == {"total": 2, "done": 1, "failed": 1, "dead": 0, "remaining": 0}
    first, second = await results(labs, job)
    names = ("winner", "reward_a", "reward_b", "margin", "scores_a", "scoring_version")
    assert {name: first[name] for name in names} == {name: alone[name] for name in names}
    assert (first["id"], second["code"]) == ("p", "invalid_request")
    report = await labs.ok("GET", f"/jobs/{job['job_id']}/report")
    assert (report["winners"], report["errors"]) == ({"a": 1, "b": 0, "tie": 0}, {"invalid_request": 1})


async def test_rescoring_tells_what_changed_and_changes_nothing(house: House, labs: Client) -> None:
    kept = await labs.ok("POST", "/evaluate", {**WHERE, "messages": TALK})
    async with house.store.transaction() as unit:
        [row] = await unit.evaluations.of("development")
        old = replace(row, evaluation_id=new_evaluation_id(), reward=0.9, scoring_version="sv_000000000000")
        await unit.evaluations.add_many([old])
    job = await labs.ok("POST", "/jobs", {"type": "rescore", "source": "evaluations", **WHERE})
    assert (await over(labs, job))["counts"]["done"] == 2
    found = {line["evaluation_id"]: line for line in await results(labs, job)}
    assert found[kept["evaluation_id"]]["delta"] == 0
    changed = found[old.evaluation_id]
    assert (changed["before"]["reward"], changed["after"]["reward"]) == (0.9, kept["reward"])
    assert changed["after"]["scoring_version"] == kept["scoring_version"]
    report = await labs.ok("GET", f"/jobs/{job['job_id']}/report")
    assert (report["n"], report["changed"], report["largest"][0]["evaluation_id"]) == (2, 1, old.evaluation_id)
    assert report["versions_before"] == {kept["scoring_version"]: 1, "sv_000000000000": 1}
    assert (await labs.ok("GET", f"/evaluations/{kept['evaluation_id']}"))["reward"] == kept["reward"]


async def test_episodes_can_be_scored_again(labs: Client) -> None:
    episode = await labs.create()
    turn = await labs.say(episode, "Good morning. How did it happen?")
    await labs.create()  # without a turn there is nothing to score
    await labs.say(await labs.ok("POST", "/episodes", {**WHERE, "score_turns": False}), "Good morning.")
    job = await labs.ok("POST", "/jobs", {"type": "rescore", "source": "episodes"})
    assert (await over(labs, job))["counts"]["total"] == 1
    [line] = await results(labs, job)
    assert (line["episode_id"], line["after"]["reward"], line["delta"]) == (episode["episode_id"], turn["reward"], 0)


async def test_an_evaluate_job_has_a_report(labs: Client) -> None:
    job = await submit(labs, {**WHERE, "messages": TALK}, {})
    await over(labs, job)
    report = await labs.ok("GET", f"/jobs/{job['job_id']}/report")
    assert (report["items"], report["errors"], report["std"]) == (2, {"invalid_request": 1}, 0)


# --- cancel, resume, follow -----------------------------------------------------------------------


async def test_a_cancelled_job_records_nothing_more_and_goes_on_when_resumed(house: House, labs: Client) -> None:
    house.matcher.close()
    job = await submit(labs, *({**WHERE, "messages": TALK} for _ in range(3)))
    await house.matcher.somebody_waits()
    cancelled = await labs.ok("POST", f"/jobs/{job['job_id']}/cancel")
    assert (cancelled["status"], cancelled["counts"]["remaining"]) == ("cancelled", 3)
    house.matcher.open()
    assert await results(labs, job) == []
    resumed = await labs.ok("POST", f"/jobs/{job['job_id']}/resume")
    assert resumed["status"] in ("queued", "running")
    assert (await over(labs, job))["counts"]["done"] == 3
    assert (await labs.ok("POST", f"/jobs/{job['job_id']}/cancel"))["status"] == "completed"
    assert_error(await labs.call("POST", f"/jobs/{job['job_id']}/resume"), 409, "conflict")


async def test_events_tell_of_progress_and_of_the_end(labs: Client) -> None:
    job = await submit(labs, {**WHERE, "messages": TALK})
    await over(labs, job)
    response = await labs.call("GET", f"/jobs/{job['job_id']}/events")
    assert response.headers["content-type"].startswith("text/event-stream")
    assert (response.headers["cache-control"], response.headers["x-accel-buffering"]) == ("no-cache", "no")
    event, data = response.text.strip().splitlines()
    assert event == "event: finished"
    assert json.loads(data.removeprefix("data: "))["counts"]["done"] == 1


# --- files ----------------------------------------------------------------------------------------


async def test_files_are_listed_read_and_deleted(house: House, labs: Client) -> None:
    first = await upload(labs, {"a": 1})
    later(house)
    second = await upload(labs, {"a": 1}, {"a": 2}, name="b.jsonl")
    assert [file["name"] for file in (await labs.ok("GET", "/files"))["data"]] == ["b.jsonl", "a.jsonl"]
    page = await labs.ok("GET", "/files?limit=1")
    rest = await labs.ok("GET", f"/files?limit=1&cursor={page['next_cursor']}")
    assert [page["data"][0]["file_id"], rest["data"][0]["file_id"]] == [second["file_id"], first["file_id"]]
    assert "next_cursor" not in rest
    assert (await labs.ok("DELETE", f"/files/{first['file_id']}"))["deleted"] is True
    assert_error(await labs.call("GET", f"/files/{first['file_id']}"), 404, "file_not_found")


async def test_a_file_that_a_job_reads_stays(house: House, labs: Client) -> None:
    house.matcher.close()
    file = await upload(labs, {**WHERE, "messages": TALK})
    job = await labs.ok("POST", "/jobs", {"type": "evaluate", "file_id": file["file_id"]})
    assert_error(await labs.call("DELETE", f"/files/{file['file_id']}"), 409, "conflict")
    house.matcher.open()
    await over(labs, job)
    await labs.ok("DELETE", f"/files/{file['file_id']}")
    assert len(await results(labs, job)) == 1


@pytest.mark.parametrize(
    ("content", "headers", "status", "code"),
    [
        (b"", {}, 400, "invalid_request"),
        (b"\n \n", {}, 400, "invalid_request"),
        (b"{}", {"Content-Type": "multipart/form-data; boundary=x"}, 415, "unsupported_media_type"),
        (b"{}", {"Content-Encoding": "gzip"}, 400, "invalid_request"),
        (b"x" * 4_000_001, {}, 400, "invalid_request"),
    ],
)
async def test_what_is_no_file_of_lines_is_refused_and_leaves_nothing(
    labs: Client, content: bytes, headers: dict[str, str], status: int, code: str
) -> None:
    response = await labs.call("POST", "/files", content=content, headers=headers)
    assert_error(response, status, code)
    assert (await labs.ok("GET", "/files"))["data"] == []


@pytest.mark.parametrize("ended", [True, False])
async def test_a_line_that_is_too_long_is_named(labs: Client, ended: bool) -> None:
    content = b"{}\n\n{}\n" + b"x" * 4_000_001 + b"\n" * ended
    response = await labs.call("POST", "/files", content=content)
    assert_error(response, 400, "invalid_request")
    assert response.json()["message"] == "Line 4 is too long: a line may have 4,000,000 bytes."
    assert (await labs.ok("GET", "/files"))["data"] == []


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"type": "evaluate"}, 400, "invalid_request"),
        ({"type": "evaluate", "items": []}, 400, "invalid_request"),
        ({"type": "evaluate", "items": [{}], "file_id": "file_1"}, 400, "invalid_request"),
        ({"type": "rescore"}, 400, "invalid_request"),
        ({"type": "rescore", "source": "episodes"}, 400, "invalid_request"),
        ({"type": "sing", "items": [{}]}, 400, "invalid_request"),
        ({"type": "evaluate", "file_id": "file_1"}, 404, "file_not_found"),
        ({"type": "evaluate", "items": [{}], **WHERE, "scenario_slug": "x"}, 404, "scenario_not_found"),
        ({"type": "evaluate", "items": [{}], "colour": 1}, 400, "invalid_request"),
    ],
)
async def test_a_job_that_cannot_be_done_is_refused(labs: Client, body: Json, status: int, code: str) -> None:
    assert_error(await labs.call("POST", "/jobs", body), status, code)
    assert (await labs.ok("GET", "/jobs"))["data"] == []


async def test_a_job_may_do_what_its_key_may(house: House) -> None:
    key = await house.key(collections=("front-desk",))
    async with house.client(key) as labs:
        refused = await labs.call("POST", "/jobs", {"type": "evaluate", "items": [{}], **WHERE})
        assert_error(refused, 403, "forbidden")
        job = await submit(labs, {**WHERE, "messages": TALK})
        await over(labs, job)
        assert [line["code"] for line in await results(labs, job)] == ["forbidden"]
        assert COLLECTION not in (await labs.call("GET", f"/jobs/{job['job_id']}/results")).text


async def test_full_scores_are_for_jobs_of_keys_that_have_them(house: House) -> None:
    found = []
    for full in (True, False):
        async with house.client(await house.key(full_scores=full)) as labs:
            job = await submit(labs, {**WHERE, "messages": TALK})
            await over(labs, job)
            found += await results(labs, job)
    assert set(found[0]) - set(found[1]) == {"score_breakdown", "capped_by"}


async def test_the_same_key_submits_one_job(labs: Client) -> None:
    body, headers = {"type": "evaluate", "items": [{**WHERE, "messages": TALK}]}, {"Idempotency-Key": "once"}
    first, second = [await labs.ok("POST", "/jobs", body, headers=headers) for _ in range(2)]
    assert first["job_id"] == second["job_id"]
    assert len((await labs.ok("GET", "/jobs"))["data"]) == 1
