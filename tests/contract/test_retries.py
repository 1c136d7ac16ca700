"""Retries are safe: stored answers, idempotency keys, turns in progress, clients that go away."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from reward_server.errors import JudgeFailed
from tests.contract.house import WAIT_S, WHERE, Client, House, Json, agent, assert_error

pytestmark = pytest.mark.one_house

FIRST = "Good morning. How did it happen?"
SECOND = "When do you need it back?"
EVALUATION = {**WHERE, "messages": [{"role": "assistant", "content": FIRST}]}
COMPARISON = {**WHERE, **{f"response_{side}": {"messages": EVALUATION["messages"]} for side in "ab"}}


def stored(body: Json) -> Json:
    return {name: value for name, value in body.items() if name != "request_id"}


# --- a full history -------------------------------------------------------------------------------


async def test_a_full_history_that_was_answered_returns_the_stored_answer(
    labs: Client, house: House, episode: Json
) -> None:
    first, second = await labs.say(episode, FIRST), await labs.say(episode, SECOND)
    log = await labs.log(episode)
    house.scored.clear()
    again = await labs.say(episode, *log[:4])
    assert stored(again) == stored(second)
    assert again["request_id"] != second["request_id"]
    assert stored(await labs.say(episode, *log[:2])) == stored(first)
    assert house.scored == []
    assert (await labs.read(episode))["turn"] == 2


async def test_it_works_after_the_end_and_whatever_else_the_request_says(labs: Client, episode: Json) -> None:
    last = await labs.say(episode, FIRST, terminate=True)
    log = await labs.log(episode)
    config = {"quality_weights": {"discovery": 1}}
    assert stored(await labs.say(episode, *log[:2], terminate=True, reward_config=config)) == stored(last)
    assert_error(await labs.turn(episode, *log, agent(SECOND)), 400, "episode_complete")
    assert_error(await labs.turn(episode, "Something else."), 400, "episode_complete")


async def test_a_lone_message_sent_again_is_a_new_turn(labs: Client, episode: Json) -> None:
    assert [(await labs.say(episode, FIRST))["turn"] for _ in range(3)] == [1, 2, 3]


# --- Idempotency-Key ------------------------------------------------------------------------------


async def test_the_same_key_returns_the_stored_answer(labs: Client, house: House, episode: Json) -> None:
    first = await labs.say(episode, FIRST, key="k1")
    house.scored.clear()
    again = await labs.say(episode, FIRST, key="k1")
    assert stored(again) == stored(first)
    assert again["request_id"] != first["request_id"]
    assert house.scored == []
    assert (await labs.say(episode, FIRST, key="k2"))["turn"] == 2


async def test_the_same_key_with_another_body_is_409(labs: Client, episode: Json) -> None:
    await labs.say(episode, FIRST, key="k1")
    assert_error(await labs.turn(episode, SECOND, key="k1"), 409, "idempotency_mismatch")
    assert_error(await labs.turn(episode, FIRST, key="k1", terminate=True), 409, "idempotency_mismatch")
    assert_error(await labs.turn(await labs.create(), FIRST, key="k1"), 409, "idempotency_mismatch")
    response = await labs.call("POST", "/evaluate", EVALUATION, headers={"Idempotency-Key": "k1"})
    assert_error(response, 409, "idempotency_mismatch")
    assert (await labs.read(episode))["turn"] == 1


async def test_a_key_is_used_up_by_a_turn_that_was_answered_before(labs: Client, episode: Json) -> None:
    first = await labs.say(episode, FIRST)
    history = (await labs.log(episode))[:2]
    assert stored(await labs.say(episode, *history, key="k1")) == stored(first)
    assert stored(await labs.say(episode, *history, key="k1")) == stored(first)
    assert_error(await labs.turn(episode, SECOND, key="k1"), 409, "idempotency_mismatch")
    assert (await labs.read(episode))["turn"] == 1


async def test_keys_are_kept_for_24_hours(labs: Client, house: House) -> None:
    headers = {"Idempotency-Key": "k1"}
    first = await labs.ok("POST", "/evaluate", EVALUATION, headers=headers)
    house.clock.advance(timedelta(hours=23, minutes=59))
    assert stored(await labs.ok("POST", "/evaluate", EVALUATION, headers=headers)) == stored(first)
    house.clock.advance(timedelta(minutes=2))
    later = await labs.ok("POST", "/evaluate", EVALUATION, headers=headers)
    assert later["evaluation_id"] != first["evaluation_id"]
    assert stored(await labs.ok("POST", "/evaluate", EVALUATION, headers=headers)) == stored(later)


@pytest.mark.parametrize(
    ("path", "body", "made"),
    [
        ("/episodes", WHERE, "episode_id"),
        ("/evaluate", EVALUATION, "evaluation_id"),
        ("/batch/evaluate", {"items": [{"id": "a", **EVALUATION}]}, "total_time_ms"),
        ("/compare", COMPARISON, "comparison_id"),
    ],
)
async def test_every_post_takes_a_key(labs: Client, path: str, body: Json, made: str) -> None:
    headers = {"Idempotency-Key": "k1"}
    first = await labs.ok("POST", path, body, headers=headers)
    assert stored(await labs.ok("POST", path, body, headers=headers)) == stored(first)
    assert (await labs.ok("POST", path, body))[made] != first[made]


async def test_an_equal_body_in_another_order_is_the_same_request(labs: Client) -> None:
    headers = {"Idempotency-Key": "k1"}
    first = await labs.ok("POST", "/evaluate", EVALUATION, headers=headers)
    turned = dict(reversed(EVALUATION.items()))
    assert stored(await labs.ok("POST", "/evaluate", turned, headers=headers)) == stored(first)


async def test_keys_of_two_labs_are_strangers(house: House) -> None:
    headers = {"Idempotency-Key": "k1"}
    async with house.client(await house.key("acme")) as acme, house.client(await house.key("globex")) as globex:
        mine = await acme.ok("POST", "/evaluate", EVALUATION, headers=headers)
        other = await globex.ok("POST", "/evaluate", EVALUATION, headers=headers)
        assert mine["evaluation_id"] != other["evaluation_id"]


async def test_a_failure_is_not_kept(labs: Client, house: House, episode: Json) -> None:
    assert_error(await labs.turn(episode, key="k1"), 400, "invalid_request")
    house.failure = lambda request: JudgeFailed()
    assert_error(await labs.turn(episode, FIRST, key="k1"), 502, "judge_failed")
    house.failure = lambda request: None
    assert (await labs.say(episode, FIRST, key="k1"))["turn"] == 1


@pytest.mark.parametrize("key", ["", "x" * 256, "tab\tin", "ümlaut"])
async def test_an_unusable_key_is_400(labs: Client, key: str) -> None:
    headers = [(b"Idempotency-Key", key.encode("latin-1"))]
    response = await labs.call("POST", "/evaluate", EVALUATION, headers=headers)
    assert_error(response, 400, "invalid_request")


async def test_the_longest_key_is_fine(labs: Client) -> None:
    await labs.ok("POST", "/evaluate", EVALUATION, headers={"Idempotency-Key": "x" * 255})


# --- at the same time -----------------------------------------------------------------------------


async def test_another_turn_meanwhile_is_409_and_is_not_played(labs: Client, house: House, episode: Json) -> None:
    house.matcher.close()
    answering = asyncio.create_task(labs.say(episode, FIRST))
    await house.matcher.somebody_waits()
    assert_error(await labs.turn(episode, SECOND), 409, "turn_in_progress")
    assert_error(await labs.turn(episode, FIRST), 409, "turn_in_progress")
    assert_error(await labs.turn(episode, SECOND, key="k"), 409, "turn_in_progress")
    assert_error(await labs.call("DELETE", f"/episodes/{episode['episode_id']}"), 409, "turn_in_progress")
    house.matcher.open()
    assert (await answering)["turn"] == 1
    assert (await labs.say(episode, SECOND, key="k"))["turn"] == 2


@pytest.mark.parametrize("form", ["full history", "key"])
async def test_a_retry_of_the_same_turn_waits_and_gets_the_same_answer(
    labs: Client, house: House, episode: Json, form: str
) -> None:
    await labs.say(episode, FIRST)
    messages = [*(await labs.log(episode)), agent(SECOND)] if form == "full history" else [agent(SECOND)]
    key = None if form == "full history" else "k1"
    house.matcher.close()
    tasks = [asyncio.create_task(labs.say(episode, *messages, key=key))]
    await house.matcher.somebody_waits()
    tasks += [asyncio.create_task(labs.say(episode, *messages, key=key)) for _ in range(4)]
    await _all_have_arrived(house, len(tasks))
    house.matcher.open()
    answers = await asyncio.gather(*tasks)
    assert len({answer["request_id"] for answer in answers}) == 5
    assert all(stored(answer) == stored(answers[0]) for answer in answers)
    assert (await labs.read(episode))["turn"] == 2


async def _all_have_arrived(house: House, count: int) -> None:
    """Every started request is inside the server and has nothing left to do but wait."""
    gauge = house.app.state.services.metrics.requests_in_work
    async with asyncio.timeout(WAIT_S):
        while gauge._value.get() < count:  # noqa: ASYNC110 (nothing in the server tells a test about arrivals)
            await asyncio.sleep(0)
    # Reads of the store run in its own threads; a request that reaches the writer or a future stays put.
    await house.app.state.services.store.ping()
    for _ in range(100):
        await asyncio.sleep(0)


async def test_an_answered_turn_can_be_had_while_another_is_being_answered(
    labs: Client, house: House, episode: Json
) -> None:
    first = await labs.say(episode, FIRST)
    log = await labs.log(episode)
    house.matcher.close()
    answering = asyncio.create_task(labs.say(episode, SECOND))
    await house.matcher.somebody_waits()
    assert stored(await labs.say(episode, *log[:2])) == stored(first)
    house.matcher.open()
    assert (await answering)["turn"] == 2


async def test_whoever_waited_for_a_turn_that_fails_gets_the_failure_too(
    labs: Client, house: House, episode: Json
) -> None:
    house.matcher.close()
    tasks = [asyncio.create_task(labs.turn(episode, FIRST, key="k1"))]
    await house.matcher.somebody_waits()
    tasks.append(asyncio.create_task(labs.turn(episode, FIRST, key="k1")))
    await _all_have_arrived(house, 2)
    house.failure = lambda request: JudgeFailed()
    house.matcher.open()
    for response in await asyncio.gather(*tasks):
        assert_error(response, 502, "judge_failed")
    house.failure = lambda request: None
    assert (await labs.say(episode, FIRST, key="k1"))["turn"] == 1


async def test_many_at_once_leave_no_gap_and_no_double(labs: Client, episode: Json) -> None:
    responses = await asyncio.gather(*(labs.turn(episode, f"Question {i}: how did it happen?") for i in range(12)))
    answered = [r.json()["turn"] for r in responses if r.status_code == 200]
    for response in responses:
        if response.status_code != 200:
            assert response.json()["data"]["code"] in ("turn_in_progress", "episode_complete")
    body = await labs.read(episode)
    assert sorted(answered) == list(range(1, body["turn"] + 1))
    assert len(body["messages"]) == 2 * body["turn"] + 1


async def test_episodes_do_not_wait_for_each_other(labs: Client) -> None:
    episodes = [await labs.create() for _ in range(8)]
    turns = await asyncio.gather(*(labs.say(episode, FIRST) for episode in episodes))
    assert [turn["turn"] for turn in turns] == [1] * 8
    assert len({str(stored(turn)) for turn in turns}) == 1


async def test_another_labs_request_never_joins(house: House) -> None:
    async with house.client(await house.key("acme")) as acme, house.client(await house.key("globex")) as globex:
        episode = await acme.create()
        messages = [*(await acme.log(episode)), agent(FIRST)]
        house.matcher.close()
        answering = asyncio.create_task(acme.say(episode, *messages))
        await house.matcher.somebody_waits()
        assert_error(await globex.turn(episode, *messages), 404, "episode_not_found")
        house.matcher.open()
        assert (await answering)["turn"] == 1


# --- clients that go away -------------------------------------------------------------------------


@pytest.mark.parametrize("key", [None, "k1"])
async def test_a_turn_is_played_to_the_end_when_its_client_goes_away(
    labs: Client, house: House, episode: Json, key: str | None
) -> None:
    messages = [*(await labs.log(episode)), agent(FIRST)]
    house.matcher.close()
    client = asyncio.create_task(labs.say(episode, *messages, key=key))
    await house.matcher.somebody_waits()
    client.cancel()
    with pytest.raises(asyncio.CancelledError):
        await client
    assert_error(await labs.turn(episode, SECOND), 409, "turn_in_progress")
    retry = asyncio.create_task(labs.say(episode, *messages, key=key))
    house.matcher.open()
    assert (await retry)["turn"] == 1
    assert (await labs.read(episode))["turn"] == 1


async def test_an_answer_that_takes_too_long_is_503_and_can_be_fetched_later(labs: Client, house: House) -> None:
    episode = await labs.create()
    messages = [*(await labs.log(episode)), agent(FIRST)]
    house.app.state.services.settings.__dict__["request_deadline_s"] = 0.01
    house.matcher.close()
    response = await labs.turn(episode, *messages)
    assert_error(response, 503, "unavailable")
    assert int(response.headers["retry-after"]) >= 1
    house.app.state.services.settings.__dict__["request_deadline_s"] = 60.0
    retry = asyncio.create_task(labs.say(episode, *messages))
    house.matcher.open()
    assert (await retry)["turn"] == 1


async def test_a_key_without_access_gets_no_answer_of_another_key_of_its_lab(house: House) -> None:
    everything, little = await house.key(), await house.key(collections=["front-desk"])
    batch, header = {"items": [{"id": "1", **EVALUATION}]}, {"Idempotency-Key": "shared"}
    async with house.client(everything) as client:
        answered = await client.ok("POST", "/batch/evaluate", batch, headers=header)
        assert answered["results"][0]["status"] == "success"
    async with house.client(little) as client:
        assert_error(await client.call("POST", "/batch/evaluate", batch, headers=header), 409, "idempotency_mismatch")
