"""The forms of `messages` in a turn: the server's log is the authority."""

from __future__ import annotations

import pytest

from tests.contract.house import Client, Json, agent, assert_error

pytestmark = pytest.mark.one_house

FIRST = "Good morning. How did it happen?"
SECOND = "When do you need it back?"


async def _visible(labs: Client, *messages: Json) -> Json:
    """The second turn of a fresh episode, without what differs between episodes."""
    episode = await labs.create()
    await labs.say(episode, FIRST)
    turn = await labs.say(episode, *messages)
    return {name: value for name, value in turn.items() if name != "request_id"}


async def test_all_three_forms_give_the_same_turn(labs: Client, episode: Json) -> None:
    await labs.say(episode, FIRST)
    log = await labs.log(episode)
    alone = await _visible(labs, agent(SECOND))
    assert alone["turn"] == 2
    assert await _visible(labs, log[-1], agent(SECOND)) == alone
    assert await _visible(labs, *log, agent(SECOND)) == alone


@pytest.mark.parametrize("count", [1, 3])
async def test_leading_system_messages_are_ignored(labs: Client, episode: Json, count: int) -> None:
    await labs.say(episode, FIRST)
    log = await labs.log(episode)
    system = [{"role": "system", "content": "You are a helpful mechanic."}] * count
    alone = await _visible(labs, agent(SECOND))
    for history in ([], log[-1:], log):
        assert await _visible(labs, *system, *history, agent(SECOND)) == alone


async def test_system_messages_are_not_in_the_transcript(labs: Client, episode: Json) -> None:
    await labs.say(episode, {"role": "system", "content": "Be nice."}, FIRST)
    assert [m["role"] for m in await labs.log(episode)] == ["assistant", "user", "assistant"]


@pytest.mark.parametrize("roles", [("assistant", "user"), ("user", "assistant"), ("user", "user")])
async def test_the_form_is_told_by_length_not_by_roles(labs: Client, episode: Json, roles: tuple[str, str]) -> None:
    opening = episode["initial_observation"]["content"]
    messages = [{"role": roles[0], "content": opening}, {"role": roles[1], "content": FIRST}]
    assert (await labs.say(episode, *messages))["turn"] == 1
    assert [m["role"] for m in await labs.log(episode)] == ["assistant", "user", "assistant"]


async def test_one_message_is_the_agents_whatever_its_role(labs: Client, episode: Json) -> None:
    for count, role in enumerate(("user", "assistant"), 1):
        assert (await labs.say(episode, {"role": role, "content": FIRST}))["turn"] == count


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda log: [{**log[0], "content": log[0]["content"] + " "}, *log[1:]], id="a space more"),
        pytest.param(lambda log: [*log[:2], {**log[2], "content": "I never said that."}], id="another persona line"),
        pytest.param(lambda log: [log[0], agent("Something else."), log[2]], id="another agent line"),
        pytest.param(lambda log: log[1:], id="the opening left out"),
        pytest.param(lambda log: [log[0], log[2]], id="the agent left out"),
        pytest.param(lambda log: [log[0]], id="an older persona line"),
        pytest.param(lambda log: [agent("Hm?")], id="a stranger's line"),
        pytest.param(lambda log: [log[0], log[2], log[1]], id="out of order"),
        pytest.param(lambda log: [*log, *log], id="twice"),
    ],
)
async def test_a_history_that_differs_is_409_and_changes_nothing(labs: Client, episode: Json, change: object) -> None:
    await labs.say(episode, FIRST)
    log = await labs.log(episode)
    response = await labs.turn(episode, *change(log), agent(SECOND))  # type: ignore[operator]
    assert response.status_code in (400, 409)
    if response.status_code == 400:
        # Twice the log is the log and more than one new message.
        assert_error(response, 400, "too_many_messages")
    else:
        assert_error(response, 409, "history_mismatch")
    assert await labs.log(episode) == log


async def test_a_history_that_differs_names_the_message(labs: Client, episode: Json) -> None:
    await labs.say(episode, FIRST)
    log = await labs.log(episode)
    spaced = [log[0], {**log[1], "content": log[1]["content"] + " "}, log[2], agent(SECOND)]
    system = {"role": "system", "content": "Be kind."}
    for sent, place in ((spaced, 1), ([system, *spaced], 2)):
        told = assert_error(await labs.turn(episode, *sent), 409, "history_mismatch")
        assert told is not None
        assert f"messages[{place}]" in (await labs.turn(episode, *sent)).json()["message"]
    window = await labs.turn(episode, log[1], log[2], agent(SECOND))
    assert "before it are missing" in window.json()["message"]


async def test_more_than_one_new_message_is_400(labs: Client, episode: Json) -> None:
    log = await labs.log(episode)
    assert_error(await labs.turn(episode, *log, agent(FIRST), agent(SECOND)), 400, "too_many_messages")
    await labs.say(episode, FIRST)
    log = await labs.log(episode)
    assert_error(await labs.turn(episode, *log, SECOND, "And why?"), 400, "too_many_messages")


async def test_a_history_without_anything_new_is_400(labs: Client, episode: Json) -> None:
    await labs.say(episode, FIRST)
    assert_error(await labs.turn(episode, *(await labs.log(episode))), 400, "no_new_message")
    assert_error(await labs.turn(episode, {"role": "system", "content": "Hi"}), 400, "no_new_message")


async def test_another_answer_to_an_answered_line_is_a_mismatch(labs: Client, episode: Json) -> None:
    await labs.say(episode, FIRST)
    log = await labs.log(episode)
    assert_error(await labs.turn(episode, log[0], agent("Something else.")), 409, "history_mismatch")


async def test_tool_calls_of_the_history_are_compared_where_given(labs: Client, episode: Json) -> None:
    call = {"name": "repair", "input": {"value": "full_service"}}
    other = {"name": "repair", "input": {"value": "new_tyre"}}
    await labs.say(episode, agent(FIRST, call))
    opening, asked, answered = await labs.log(episode)
    assert asked["tool_calls"] == [call]
    changed = agent(FIRST, other)
    assert_error(await labs.turn(episode, opening, changed, answered, agent(SECOND)), 409, "history_mismatch")
    assert (await labs.say(episode, opening, agent(FIRST), answered, agent(SECOND)))["turn"] == 2
