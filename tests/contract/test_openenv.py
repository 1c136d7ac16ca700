"""OpenEnv at /compat/openenv, over its socket and over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import websockets

from personas.reading.matcher import Matcher
from reward_server.errors import JudgeFailed
from scenarios.library import Library
from tests.contract.house import WAIT_S, WHERE, Client, House, Json, assert_error, running_house
from tests.contract.test_over_a_socket import listening
from tests.contract.test_secrecy import leaks

PATH = "/compat/openenv"
ASKS = ("How did the flat tyre happen, if I may ask?", "How old is the tyre?")


class Session:
    """One socket."""

    def __init__(self, socket: websockets.ClientConnection) -> None:
        self.socket = socket
        self.received: list[str] = []

    async def ask(self, kind: str, data: Any = None) -> Json:
        await self.socket.send(json.dumps({"type": kind} if data is None else {"type": kind, "data": data}))
        text = str(await self.socket.recv())
        self.received.append(text)
        answer: Json = json.loads(text)
        return answer


@asynccontextmanager
async def session(house: House, **options: Any) -> AsyncIterator[Session]:
    async with (
        listening(house) as port,
        websockets.connect(f"ws://127.0.0.1:{port}/api/v1{PATH}/ws", **options) as socket,
    ):
        yield Session(socket)


async def test_the_last_step_has_the_reward_of_evaluate(house: House, labs: Client) -> None:
    async with session(house) as played:
        begun = await played.ask("reset", {**WHERE, "seed": 7, "max_turns": 2, "row": 3})
        assert (begun["type"], begun["data"]["reward"], begun["data"]["done"]) == ("observation", None, False)
        first = await played.ask("step", {"message": ASKS[0]})
        assert (first["data"]["reward"], first["data"]["done"]) == (None, False)
        last = await played.ask("step", {"message": ASKS[1]})
        state = (await played.ask("state"))["data"]
        assert leaks("".join(played.received)) == []
    assert state["step_count"] == 2
    episode = await labs.ok("GET", f"/episodes/{state['episode_id']}")
    evaluated = await labs.ok("POST", "/evaluate", {**WHERE, "messages": episode["messages"], "agent_role": "user"})
    assert (last["data"]["done"], last["data"]["reward"]) == (True, evaluated["reward"])
    assert evaluated["reward"] > 0


async def test_with_a_reward_for_each_step_it_comes_with_its_dimensions(
    data: Path, matcher: Matcher, library: Library
) -> None:
    async with running_house(data, matcher, library, step_rewards="each") as house, house.client() as labs:
        await labs.ok("POST", f"{PATH}/reset", {**WHERE, "seed": 7, "max_turns": 2})
        steps = [await labs.ok("POST", f"{PATH}/step", {"action": {"message": ask}}) for ask in ASKS]
        state = await labs.ok("GET", f"{PATH}/state")
        episode = await labs.ok("GET", f"/episodes/{state['episode_id']}")
        evaluated = await labs.ok("POST", "/evaluate", {**WHERE, "messages": episode["messages"], "agent_role": "user"})
    assert [step["reward"] for step in steps] == episode["rewards"]
    assert steps[-1]["observation"]["metadata"] == {"reward_components": evaluated["scores"]}
    assert leaks(json.dumps(steps)) == []


async def test_a_step_that_was_not_scored_is_an_error_and_may_be_sent_again(house: House) -> None:
    async with session(house) as played:
        await played.ask("reset", {**WHERE, "seed": 7, "max_turns": 1})
        house.failure = lambda request: JudgeFailed()
        failed = await played.ask("step", {"message": ASKS[0]})
        assert (failed["type"], failed["data"]["code"]) == ("error", "EXECUTION_ERROR")
        house.failure = lambda request: None
        again = await played.ask("step", {"message": ASKS[0]})
        assert again["data"]["done"] is True
        assert again["data"]["reward"] is not None


async def test_a_message_that_is_refused_is_not_read(house: House) -> None:
    key = await house.key(rate_per_minute=1)
    house.end_development_mode()
    broken = '{"type": "step", "data": {"message": "' + "x" * 100_000
    async with session(house, additional_headers={"Authorization": f"Bearer {key}"}) as played, asyncio.timeout(WAIT_S):
        for code in ("INVALID_JSON", "CAPACITY_REACHED"):
            await played.socket.send(broken)
            assert json.loads(await played.socket.recv())["data"]["code"] == code


@pytest.mark.parametrize("revoked", [False, True])
async def test_a_close_ends_the_session_of_a_key_that_may_send_nothing_more(house: House, revoked: bool) -> None:
    key = await house.key(rate_per_minute=1)
    house.end_development_mode()
    async with session(house, additional_headers={"Authorization": f"Bearer {key}"}) as played, asyncio.timeout(WAIT_S):
        assert (await played.ask("state"))["type"] == "state"
        assert (await played.ask("state"))["data"]["code"] == "CAPACITY_REACHED"
        if revoked:
            await house.app.state.services.keys.revoke(key.split("_")[1])
        await played.socket.send(json.dumps({"type": "close"}))
        with pytest.raises(websockets.ConnectionClosedOK):
            await played.socket.recv()


async def test_it_says_that_it_is_well_and_what_it_is(labs: Client) -> None:
    assert (await labs.ok("GET", f"{PATH}/health"))["status"] == "healthy"
    assert (await labs.ok("GET", f"{PATH}/metadata"))["name"] == "labs"


async def test_over_http_a_cookie_holds_the_episode(labs: Client) -> None:
    assert_error(await labs.call("POST", f"{PATH}/step", {"action": {"message": "Hello."}}), 404, "episode_not_found")
    begun = await labs.ok("POST", f"{PATH}/reset", {**WHERE, "seed": 7, "max_turns": 1})
    assert (begun["reward"], begun["done"]) == (None, False)
    last = await labs.ok("POST", f"{PATH}/step", {"action": {"message": ASKS[0]}, "timeout_s": 30})
    assert last["done"] is True
    state = await labs.ok("GET", f"{PATH}/state")
    episode = await labs.ok("GET", f"/episodes/{state['episode_id']}")
    assert (state["step_count"], last["reward"]) == (1, episode["rewards"][-1])
