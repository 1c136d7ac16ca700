"""Episodes that the server keeps in memory: what the database says counts, whatever the copy says.

Each test makes the copy stale behind the server's back, or has nothing but the copy.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from personas.reading.matcher import Matcher
from reward_server.auth.lab import Plan
from reward_server.episodes.cache import LoadedEpisode
from reward_server.episodes.service import EpisodeService
from reward_server.errors import StoreUnavailable
from reward_server.store.records import EpisodeStatus
from scenarios.library import Library
from tests.contract.house import OTHER, Client, House, Json, agent, assert_error, running_house

ASK_CAUSE = "Good morning. I'm sorry to hear that. How did it happen?"
ASK_DEADLINE = "I understand. When do you need it back?"
OFFER = "Then I will put in a new tube and have it ready on Friday."
LAB = "development"


def service(house: House) -> EpisodeService:
    episodes: EpisodeService = house.app.state.services.episodes
    return episodes


def kept(house: House, episode: Json, lab_id: str = LAB) -> LoadedEpisode | None:
    return service(house).in_play.find(lab_id, episode["episode_id"])


async def stored(house: House, episode: Json, lab_id: str = LAB) -> LoadedEpisode:
    async with house.store.reading() as unit:
        row = await unit.episodes.get(lab_id, episode["episode_id"])
        assert row is not None
        return LoadedEpisode(row, await unit.episodes.turns(lab_id, episode["episode_id"]))


async def delete_behind_its_back(house: House, lab_id: str = LAB) -> None:
    async with house.store.transaction() as unit:
        await unit.disposal.delete(lab_id)


async def batch(labs: Client, *turns: tuple[Json, str], **options: Any) -> list[Json]:
    items = [{"episode_id": episode["episode_id"], "messages": [agent(text)]} for episode, text in turns]
    results: list[Json] = (await labs.ok("POST", "/batch/turns", {"items": items}, **options))["results"]
    return results


def said(response: httpx2.Response) -> bytes:
    """The body without what is new in every response."""
    return response.content.replace(response.headers["x-request-id"].encode(), b"")


# --- the copy -----------------------------------------------------------------------------------


async def test_a_turn_that_goes_on_reads_nothing_from_the_database(
    labs: Client, house: House, episode: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await labs.say(episode, ASK_CAUSE)
    log = await labs.log(episode)
    reads: list[str] = []
    real = house.store.read

    async def read(block: Any) -> Any:
        reads.append("read")
        return await real(block)

    monkeypatch.setattr(house.store, "read", read)
    assert (await labs.say(episode, ASK_DEADLINE))["turn"] == first["turn"] + 1
    [result] = await batch(labs, (episode, OFFER))
    assert (result["turn"], reads) == (3, [])
    # One that was answered before is read.
    assert (await labs.say(episode, *log[:2]))["turn"] == 1
    assert reads == ["read"]


async def test_the_copy_is_what_the_database_has(labs: Client, house: House, episode: Json) -> None:
    call = {"name": "repair", "type": "decision", "input": {"value": "new_tube", "price": 12.0, "ü": [1, None]}}
    for message in (agent(ASK_CAUSE), agent(OFFER, call)):
        await labs.say(episode, message)
        database, copy = await stored(house, episode), kept(house, episode)
        assert copy is not None
        assert copy.row == database.row
        assert list(copy.turns) == [replace(turn, answer={}) for turn in database.turns]


async def test_with_and_without_a_copy_turns_are_the_same(labs: Client, house: House) -> None:
    answers = []
    for forgets in (False, True):
        episode = await labs.create()
        told = []
        for text in (ASK_CAUSE, ASK_DEADLINE, OFFER):
            if forgets:
                assert service(house).in_play.forget(LAB, episode["episode_id"])
            told.append(said(await labs.turn(episode, text)))
        answers.append(told)
    assert answers[0] == answers[1]


async def test_only_episodes_that_go_on_are_kept(labs: Client, house: House) -> None:
    ended, played = await labs.create(), await labs.create()
    assert kept(house, ended) is not None
    await labs.ok("DELETE", f"/episodes/{ended['episode_id']}")
    await labs.say(played, ASK_CAUSE, terminate=True)
    assert (kept(house, ended), kept(house, played)) == (None, None)
    assert service(house).in_play.held_bytes == 0
    assert_error(await labs.turn(ended, ASK_CAUSE), 400, "episode_complete")


async def test_what_is_kept_is_on_the_metrics_page(labs: Client, house: House, episode: Json) -> None:
    page = (await labs.http.get("/metrics")).text
    [line] = [line for line in page.splitlines() if line.startswith('labs_cache_bytes{cache="episodes"}')]
    assert float(line.rpartition(" ")[2]) == service(house).in_play.held_bytes > 0


# --- a copy that is out of date -------------------------------------------------------------------


async def test_an_episode_whose_labs_data_was_deleted_is_forgotten_at_once(house: House) -> None:
    made = await house.keys().create("acme", plan=Plan.CUSTOM, rate_per_minute=100_000)
    house.end_development_mode()
    async with house.client(made.text) as client:
        episode = await client.create()
        await client.say(episode, ASK_CAUSE)
        scored = len(house.scored)
        await house.app.state.services.tenants.delete_data("acme")
        assert kept(house, episode, "acme") is None
        assert_error(await client.turn(episode, ASK_DEADLINE), 404, "episode_not_found")
        assert len(house.scored) == scored


async def test_conversations_that_are_too_old_are_forgotten_at_once(house: House) -> None:
    made = await house.keys().create("acme", plan=Plan.CUSTOM, rate_per_minute=100_000)
    house.end_development_mode()
    tenants = house.app.state.services.tenants
    await tenants.change("acme", limits=replace((await tenants.get("acme")).limits, retention_days=1))
    async with house.client(made.text) as client:
        episode = await client.create()
        house.clock.advance(timedelta(days=2))
        assert await tenants.expire() == {"acme": 1}
        assert kept(house, episode, "acme") is None


async def test_an_episode_that_another_process_deleted_is_not_found_and_stays_away(
    labs: Client, house: House, episode: Json
) -> None:
    await labs.say(episode, ASK_CAUSE)
    log = await labs.log(episode)
    await delete_behind_its_back(house)
    assert kept(house, episode) is not None
    assert_error(await labs.turn(episode, ASK_DEADLINE), 404, "episode_not_found")
    assert kept(house, episode) is None
    assert_error(await labs.turn(episode, *log, agent(ASK_DEADLINE)), 404, "episode_not_found")
    async with house.store.reading() as unit:
        assert await unit.episodes.get(LAB, episode["episode_id"]) is None
        assert await unit.episodes.turns(LAB, episode["episode_id"]) == []


async def test_a_batch_with_an_episode_that_another_process_deleted_plays_the_others(
    labs: Client, house: House, episode: Json
) -> None:
    await labs.say(episode, ASK_CAUSE)
    await delete_behind_its_back(house)
    alive = await labs.create()
    headers = {"Idempotency-Key": "batch-1"}
    results = await batch(labs, (episode, ASK_DEADLINE), (alive, ASK_CAUSE), headers=headers)
    assert [result.get("code", result.get("turn")) for result in results] == ["episode_not_found", 1]
    assert await batch(labs, (episode, ASK_DEADLINE), (alive, ASK_CAUSE), headers=headers) == results
    assert len((await stored(house, alive)).turns) == 1


async def test_an_episode_that_another_process_ended_is_complete(labs: Client, house: House, episode: Json) -> None:
    await labs.say(episode, ASK_CAUSE)
    row = (await stored(house, episode)).row
    ended = replace(row, status=EpisodeStatus.COMPLETE, terminal_reason="client_terminated")
    async with house.store.transaction() as unit:
        await unit.episodes.finish(ended)
    assert_error(await labs.turn(episode, ASK_DEADLINE), 400, "episode_complete")
    assert kept(house, episode) is None


async def test_an_episode_that_has_expired_is_not_found(labs: Client, house: House, episode: Json) -> None:
    await labs.say(episode, ASK_CAUSE)
    scored = len(house.scored)
    house.clock.advance(timedelta(hours=24))
    assert_error(await labs.turn(episode, ASK_DEADLINE), 404, "episode_not_found")
    [result] = await batch(labs, (episode, ASK_DEADLINE))
    assert (result["code"], len(house.scored)) == ("episode_not_found", scored)


@pytest.mark.parametrize("way", ["turn", "batch"])
async def test_a_copy_that_is_behind_is_played_from_what_the_database_says(
    labs: Client, house: House, way: str
) -> None:
    """As after a commit that failed and was done all the same."""
    told: list[Json] = []
    for is_behind in (False, True):
        episode = await labs.create()
        await labs.say(episode, ASK_CAUSE)
        behind = kept(house, episode)
        assert behind is not None
        await labs.say(episode, ASK_DEADLINE)
        if is_behind:
            service(house).in_play.keep(behind)
        if way == "turn":
            last = await labs.say(episode, OFFER)
        else:
            [last] = await batch(labs, (episode, OFFER))
        told.append({name: value for name, value in last.items() if name not in ("request_id", "episode_id")})
        assert [turn.turn for turn in (await stored(house, episode)).turns] == [1, 2, 3]
    assert told[0] == told[1]
    assert told[0]["turn"] == 3


async def test_a_turn_that_was_stored_though_its_commit_failed_is_recalled(
    labs: Client, house: House, episode: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    await labs.say(episode, ASK_CAUSE)
    log = await labs.log(episode)
    real = house.store.append_turns

    async def unsure(*arguments: Any) -> None:
        await real(*arguments)
        raise StoreUnavailable

    with monkeypatch.context() as patched:
        patched.setattr(house.store, "append_turns", unsure)
        assert_error(await labs.turn(episode, *log, agent(ASK_DEADLINE)), 503, "store_unavailable")
    again = await labs.say(episode, *log, agent(ASK_DEADLINE))
    assert again["turn"] == 2
    database = await stored(house, episode)
    assert [turn.turn for turn in database.turns] == [1, 2]
    answer = database.turns[1].answer
    assert {name: answer[name] for name in again.keys() - {"request_id"}} | {"request_id": again["request_id"]} == again
    assert (await labs.say(episode, OFFER))["turn"] == 3


async def test_a_key_that_may_not_use_the_collection_is_refused_as_without_a_copy(house: House) -> None:
    ring = house.keys()
    whole = await ring.create("acme", plan=Plan.CUSTOM, rate_per_minute=100_000)
    part = await ring.create("acme", plan=Plan.CUSTOM, rate_per_minute=100_000, collections=(OTHER["collection_slug"],))
    house.end_development_mode()
    async with house.client(whole.text) as client, house.client(part.text) as other:
        episode = await client.create()
        assert kept(house, episode, "acme") is not None
        refused = await other.turn(episode, ASK_CAUSE)
        assert_error(refused, 403, "forbidden")
        assert "collection of this episode" in refused.text
        await house.app.state.services.keys.revoke(whole.row.key_id)
        assert_error(await client.turn(episode, ASK_CAUSE), 401, "unauthenticated")
        assert (await stored(house, episode, "acme")).turns == []


# --- sent again, and at the same time -------------------------------------------------------------


async def test_a_turn_sent_again_with_its_key_is_answered_to_the_byte(labs: Client, house: House) -> None:
    episode = await labs.create()
    first = await labs.turn(episode, ASK_CAUSE, key="k-1")
    again = await labs.turn(episode, ASK_CAUSE, key="k-1")
    await labs.say(episode, ASK_DEADLINE)
    later = await labs.turn(episode, ASK_CAUSE, key="k-1")
    log = await labs.log(episode)
    by_history = await labs.turn(episode, *log[:2])
    assert said(first) == said(again) == said(later) == said(by_history)
    assert len((await stored(house, episode)).turns) == 2


async def test_of_many_at_one_position_one_is_played(labs: Client, house: House, episode: Json) -> None:
    await labs.say(episode, ASK_CAUSE)
    log = await labs.log(episode)
    texts = [f"{ASK_DEADLINE} I have place {number}." for number in range(8)]
    answers = await asyncio.gather(*(labs.turn(episode, *log, agent(text)) for text in texts))
    assert sorted(answer.status_code for answer in answers) == [200, *([409] * 7)]
    turns = (await stored(house, episode)).turns
    [won] = [text for text, answer in zip(texts, answers, strict=True) if answer.status_code == 200]
    assert [turn.agent_content for turn in turns] == [ASK_CAUSE, won]


# --- two servers on one database -----------------------------------------------------------------


@pytest.fixture
async def two(tmp_path: Path, postgres_url: str, matcher: Matcher, library: Library) -> AsyncIterator[list[House]]:
    async with AsyncExitStack() as stack:
        houses = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            running = running_house(tmp_path / name, matcher, library, database_url=postgres_url)
            houses.append(await stack.enter_async_context(running))
        yield houses


async def test_two_servers_on_one_database_keep_no_copies_and_take_turns(two: list[House]) -> None:
    async with two[0].client() as one, two[1].client() as other:
        episode = await one.create()
        turns = [
            await client.say(episode, text)
            for client, text in ((one, ASK_CAUSE), (other, ASK_DEADLINE), (one, OFFER), (other, "Thank you."))
        ]
        assert [turn["turn"] for turn in turns] == [1, 2, 3, 4]
        assert [kept(house, episode) for house in two] == [None, None]
        assert [service(house).in_play.held_bytes for house in two] == [0, 0]
        assert [turn.turn for turn in (await stored(two[0], episode)).turns] == [1, 2, 3, 4]


async def test_of_two_servers_one_plays_a_position(two: list[House]) -> None:
    async with two[0].client() as one, two[1].client() as other:
        episode = await one.create()
        for number in range(4):
            log = await one.log(episode)
            texts = [f"{ASK_CAUSE} I am number {number}, server {server}." for server in range(2)]
            answers = await asyncio.gather(
                *(client.turn(episode, *log, agent(text)) for client, text in zip((one, other), texts, strict=True))
            )
            assert sorted(answer.status_code for answer in answers) in ([200, 409], [200, 400])
            [won] = [text for text, answer in zip(texts, answers, strict=True) if answer.status_code == 200]
            turns = (await stored(two[0], episode)).turns
            assert (len(turns), turns[-1].agent_content) == (number + 1, won)
