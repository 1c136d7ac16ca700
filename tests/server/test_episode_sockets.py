"""The WebSockets of a real server process, with a client library: the same numbers, limits and refusals as HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.faults.server_process import WHERE, ServerProcess, server_process

pytestmark = pytest.mark.slow

Json = dict[str, Any]
ASK = "Good morning. How did it happen?"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with server_process(tmp_path_factory.mktemp("sockets"), keys=("acme", "rival")) as running:
        yield running


def socket(server: ServerProcess, lab: str | None = "acme", path: str = "/api/v1/episodes/ws") -> Any:
    headers = {} if lab is None else {"Authorization": f"Bearer {server.keys.get(lab, lab)}"}
    return connect(f"ws://127.0.0.1:{server.port}{path}", additional_headers=headers, compression=None)


async def asked(ws: ClientConnection, **operation: Any) -> Json:
    await ws.send(json.dumps(operation))
    async with asyncio.timeout(60):
        found: Json = json.loads(await ws.recv())
    return found


def say(text: str) -> list[Json]:
    return [{"role": "user", "content": text}]


async def test_an_episode_over_a_socket_is_what_it_is_over_http(server: ServerProcess) -> None:
    wanted = {**WHERE, "config": {"seed": 7, "persona_slug": "plainspoken"}}
    async with server.client("acme") as http, socket(server) as ws:
        episode = (await http.post("/episodes", json=wanted)).json()
        path = f"/episodes/{episode['episode_id']}"
        turn = (await http.post(f"{path}/turns", json={"messages": say(ASK)})).json()
        created = await asked(ws, op="create", ref="a", **wanted)
        played = await asked(ws, op="turn", ref=2, episode_id=created["episode_id"], messages=say(ASK))
        ended = await asked(ws, op="close", episode_id=created["episode_id"])
        seen = (await http.get(f"/episodes/{created['episode_id']}")).json()
    assert (created["ref"], played["ref"]) == ("a", 2)
    assert {**_same(episode), "ref": "a"} == _same(created)
    assert {**_same(turn), "ref": 2} == _same(played)
    assert turn["turns_left"] == played["turns_left"] == episode["max_turns"] - 1
    assert "ref" not in ended
    assert (ended["status"], seen["rewards"]) == ("complete", [turn["reward"]])


async def test_many_episodes_at_once_are_told_apart_by_ref(server: ServerProcess) -> None:
    async with socket(server) as ws:
        for number in range(20):
            await ws.send(json.dumps({"op": "create", "ref": f"new {number}", **WHERE}))
        begun = [json.loads(await ws.recv()) for _ in range(20)]
        for each in begun:
            turn = {"op": "turn", "ref": each["episode_id"], "episode_id": each["episode_id"], "messages": say(ASK)}
            await ws.send(json.dumps(turn))
        played = [json.loads(await ws.recv()) for _ in range(20)]
    assert {each["ref"] for each in begun} == {f"new {number}" for number in range(20)}
    assert {each["ref"] for each in played} == {each["episode_id"] for each in begun}
    assert {each["turn"] for each in played} == {1}


@pytest.mark.parametrize(
    ("operation", "status", "code"),
    [
        ({"op": "sing"}, 400, "invalid_request"),
        ({}, 400, "invalid_request"),
        ({"op": "create"}, 400, "invalid_request"),
        ({"op": "create", **WHERE, "scenario_slug": "x"}, 404, "scenario_not_found"),
        ({"op": "turn", "messages": say("Hi.")}, 400, "invalid_request"),
        ({"op": "turn", "episode_id": "ep_x", "messages": say("Hi.")}, 404, "episode_not_found"),
        ({"op": "close", "episode_id": "ep_x"}, 404, "episode_not_found"),
        ({"op": "close", "episode_id": "ep_x", "colour": 1}, 400, "invalid_request"),
        ({"op": "create", **WHERE, "idempotency_key": ""}, 400, "invalid_request"),
    ],
)
async def test_what_cannot_be_done_is_answered_in_the_envelope(
    server: ServerProcess, operation: Json, status: int, code: str
) -> None:
    async with socket(server) as ws:
        refused = await asked(ws, ref="r", **operation)
        assert (refused["ref"], refused["status"], refused["data"]["code"]) == ("r", status, code)
        assert refused["data"]["request_id"].startswith("req_")
        assert "episode_id" in await asked(ws, op="create", **WHERE)


@pytest.mark.parametrize("sent", ["no json", "[1]", '{"ref": [1]}', "NaN", b"\xff", ""])
async def test_what_is_no_operation_is_refused_and_the_socket_stays(server: ServerProcess, sent: str | bytes) -> None:
    async with socket(server) as ws:
        await ws.send(sent)
        assert json.loads(await ws.recv())["data"]["code"] == "invalid_request"
        assert "episode_id" in await asked(ws, op="create", **WHERE)


async def test_another_labs_episode_is_not_there(server: ServerProcess) -> None:
    async with socket(server) as mine, socket(server, "rival") as theirs:
        episode = await asked(mine, op="create", **WHERE)
        refused = await asked(theirs, op="turn", episode_id=episode["episode_id"], messages=say(ASK))
    assert refused["data"]["code"] == "episode_not_found"


@pytest.mark.parametrize("lab", [None, "lab_wrong"])
async def test_without_a_key_there_is_no_socket(server: ServerProcess, lab: str | None) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with socket(server, lab):
            pass
    assert refused.value.response.status_code == 401
    assert json.loads(refused.value.response.body)["data"]["code"] == "unauthenticated"
    async with server.client("acme") as http:
        assert (await http.get("/catalog")).status_code == 200
    # Whoever has no key writes no errors into the log.
    levels = [json.loads(line)["level"] for line in (server.data.parent / "server.log").read_text().splitlines()]
    assert levels
    assert "error" not in levels


async def test_the_socket_of_openenv_is_there_for_a_key_in_the_address(server: ServerProcess) -> None:
    path = "/api/v1/compat/openenv/ws"
    with pytest.raises(InvalidStatus) as refused:
        await socket(server, None, path)
    assert refused.value.response.status_code == 401
    async with connect(f"ws://labs:{server.keys['acme']}@127.0.0.1:{server.port}{path}", compression=None) as ws:
        assert (await asked(ws, type="reset", data={**WHERE, "seed": 7, "max_turns": 1}))["type"] == "observation"
        last = (await asked(ws, type="step", data={"message": ASK}))["data"]
    assert (last["done"], type(last["reward"])) == (True, float)


async def test_other_paths_have_no_sockets(server: ServerProcess) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with socket(server, path="/api/v1/episodes"):
            pass
    assert refused.value.response.status_code == 200


async def test_an_oversized_message_ends_the_socket_alone(server: ServerProcess) -> None:
    async with socket(server) as ws:
        with suppress(ConnectionClosed):
            await ws.send("x" * 4_000_001)
        with pytest.raises(ConnectionClosed) as closed:
            await ws.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009
    async with server.client("acme") as http:
        assert (await http.get("/episodes")).status_code == 200


async def test_the_same_idempotency_key_begins_one_episode(server: ServerProcess) -> None:
    async with socket(server) as ws:
        first, second = [await asked(ws, op="create", idempotency_key="one", **WHERE) for _ in range(2)]
    assert first["episode_id"] == second["episode_id"]


def _same(body: Json) -> Json:
    return {name: value for name, value in body.items() if name not in ("request_id", "episode_id", "expires_at")}
