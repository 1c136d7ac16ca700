"""A lab's keys share its jobs and files, but each sees of them only what it may see elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from tests.contract.house import COLLECTION, OTHER, WHERE, Client, House, assert_error
from tests.contract.test_jobs import TALK, over, results, submit, upload

FULL_SCORES_ONLY = {"score_breakdown", "capped_by"}
CALLS = (
    ("GET", ""),
    ("GET", "/results"),
    ("GET", "/report"),
    ("GET", "/events"),
    ("POST", "/cancel"),
    ("POST", "/resume"),
    ("POST", "/retry"),
)


@dataclass
class Keys:
    """Three keys of one lab."""

    plain: Client
    full: Client
    """With full score access."""
    bikes: Client
    """Restricted to the collection of `WHERE`."""


@pytest.fixture
async def keys(house: House) -> AsyncIterator[Keys]:
    texts = [await house.key(), await house.key(full_scores=True), await house.key(collections=(COLLECTION,))]
    house.end_development_mode()
    async with house.client(texts[0]) as plain, house.client(texts[1]) as full, house.client(texts[2]) as bikes:
        yield Keys(plain, full, bikes)


async def test_full_scores_are_for_keys_that_have_them_whichever_key_submitted(keys: Keys) -> None:
    for submitter in (keys.full, keys.plain):
        job = await submit(submitter, {**WHERE, "messages": TALK})
        await over(submitter, job)
        [seen], [whole] = await results(keys.plain, job), await results(keys.full, job)
        assert set(whole) - set(seen) == FULL_SCORES_ONLY
        assert seen == {name: value for name, value in whole.items() if name not in FULL_SCORES_ONLY}


async def test_a_job_with_more_collections_than_the_key_has_is_forbidden(keys: Keys) -> None:
    job = await submit(keys.plain, {**OTHER, "messages": TALK})
    await over(keys.plain, job)
    for method, path in CALLS:
        assert_error(await keys.bikes.call(method, f"/jobs/{job['job_id']}{path}"), 403, "forbidden")


async def test_a_restricted_key_has_its_own_jobs_and_lists_no_others(keys: Keys) -> None:
    own = [await submit(keys.bikes, {**WHERE, "messages": TALK}) for _ in range(2)]
    others = [await submit(keys.plain, {**OTHER, "messages": TALK}) for _ in range(3)]
    for job in own:
        await over(keys.bikes, job)
        assert [line["status"] for line in await results(keys.bikes, job)] == ["success"]
    first = await keys.bikes.ok("GET", "/jobs?limit=1")
    second = await keys.bikes.ok("GET", f"/jobs?limit=1&cursor={first['next_cursor']}")
    assert {each["job_id"] for page in (first, second) for each in page["data"]} == {each["job_id"] for each in own}
    assert "next_cursor" not in second
    everything = await keys.plain.ok("GET", "/jobs")
    assert {each["job_id"] for each in everything["data"]} == {each["job_id"] for each in own + others}


@pytest.mark.parametrize("source", ["episodes", "evaluations"])
async def test_rescoring_a_source_takes_the_collections_of_the_key(keys: Keys, source: str) -> None:
    for where in (WHERE, OTHER):
        episode = await keys.plain.ok("POST", "/episodes", {**where, "config": {"seed": 7}})
        await keys.plain.say(episode, "Good morning. How did it happen?")
        await keys.plain.ok("POST", "/evaluate", {**where, "messages": TALK})
    job = await keys.bikes.ok("POST", "/jobs", {"type": "rescore", "source": source})
    assert (await over(keys.bikes, job))["counts"]["total"] == 1
    assert [line["collection_slug"] for line in await results(keys.bikes, job)] == [COLLECTION]
    job = await keys.plain.ok("POST", "/jobs", {"type": "rescore", "source": source})
    assert (await over(keys.plain, job))["counts"]["done"] == 2


async def test_a_file_of_a_key_with_more_collections_is_forbidden(keys: Keys) -> None:
    file = await upload(keys.plain, {**WHERE, "messages": TALK})
    for method in ("GET", "DELETE"):
        assert_error(await keys.bikes.call(method, f"/files/{file['file_id']}"), 403, "forbidden")
    job = {"type": "evaluate", "file_id": file["file_id"]}
    assert_error(await keys.bikes.call("POST", "/jobs", job), 403, "forbidden")
    await over(keys.plain, await keys.plain.ok("POST", "/jobs", job))
    await keys.full.ok("DELETE", f"/files/{file['file_id']}")


async def test_a_restricted_key_has_its_own_files_and_lists_no_others(keys: Keys) -> None:
    own = [(await upload(keys.bikes, {**WHERE, "messages": TALK}))["file_id"] for _ in range(2)]
    others = [(await upload(keys.plain, {**WHERE, "messages": TALK}))["file_id"] for _ in range(3)]
    first = await keys.bikes.ok("GET", "/files?limit=1")
    second = await keys.bikes.ok("GET", f"/files?limit=1&cursor={first['next_cursor']}")
    assert {each["file_id"] for page in (first, second) for each in page["data"]} == set(own)
    assert "next_cursor" not in second
    assert {each["file_id"] for each in (await keys.plain.ok("GET", "/files"))["data"]} == {*own, *others}
    job = await keys.bikes.ok("POST", "/jobs", {"type": "evaluate", "file_id": own[0]})
    assert (await over(keys.bikes, job))["counts"]["done"] == 1
    for file_id in own:
        await keys.bikes.ok("DELETE", f"/files/{file_id}")
