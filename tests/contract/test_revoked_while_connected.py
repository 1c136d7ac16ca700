"""What goes on when its key is revoked: streams of events and sockets end, jobs do not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
import websockets

from reward_server.ids import IdPrefix, new_id
from tests.contract.house import WHERE, House, assert_error
from tests.contract.test_jobs import TALK, over, submit
from tests.contract.test_over_a_socket import listening
from tests.contract.test_training_runs import stored

WAIT_S = 60.0


@asynccontextmanager
async def streaming(port: int, path: str, key: str) -> AsyncIterator[AsyncIterator[str]]:
    """The lines of a stream of events."""
    async with (
        asyncio.timeout(WAIT_S),
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=WAIT_S) as http,
        http.stream("GET", f"http://127.0.0.1:{port}/api/v1{path}") as response,
    ):
        assert response.status_code == 200
        yield response.aiter_lines()


async def revoke(house: House, key: str) -> None:
    await house.app.state.services.keys.revoke(key.split("_")[1])


async def test_a_jobs_events_end_without_finished_and_the_job_goes_on(house: House) -> None:
    key, other = await house.key(), await house.key()
    house.end_development_mode()
    house.matcher.close()
    async with house.client(key) as labs, house.client(other) as others, listening(house) as port:
        job = await submit(labs, {**WHERE, "messages": TALK})
        await house.matcher.somebody_waits()
        async with streaming(port, f"/jobs/{job['job_id']}/events", key) as lines:
            first = await anext(lines)
            await revoke(house, key)
            rest = [line async for line in lines]
        assert first == "event: progress"
        assert "event: finished" not in rest
        assert_error(await labs.call("GET", f"/jobs/{job['job_id']}/events"), 401, "unauthenticated")
        house.matcher.open()
        assert (await over(others, job))["counts"]["done"] == 1


async def test_a_training_runs_events_end_without_finished(house: House) -> None:
    key = await house.key()
    house.end_development_mode()
    run = await stored(house)
    async with listening(house) as port, streaming(port, f"/training-runs/{run}/events", key) as lines:
        first = await anext(lines)
        await revoke(house, key)
        rest = [line async for line in lines]
    assert first == "event: progress"
    assert "event: finished" not in rest


@pytest.mark.parametrize(
    ("path", "operation"),
    [
        ("/episodes/ws", {"op": "create", **WHERE}),
        ("/compat/openenv/ws", {"type": "reset", "data": {**WHERE, "seed": 7}}),
    ],
)
async def test_a_socket_is_told_why_and_closed(house: House, path: str, operation: dict[str, Any]) -> None:
    key = await house.key()
    house.end_development_mode()
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        listening(house) as port,
        websockets.connect(f"ws://127.0.0.1:{port}/api/v1{path}", additional_headers=headers) as socket,
        asyncio.timeout(WAIT_S),
    ):
        await socket.send(json.dumps(operation))
        assert "unauthenticated" not in str(await socket.recv())
        await revoke(house, key)
        await socket.send(json.dumps(operation))
        assert "unauthenticated" in str(await socket.recv())
        with pytest.raises(websockets.ConnectionClosed):
            await socket.recv()
        assert socket.close_code == 1008


async def test_a_lab_follows_so_many_streams_and_another_lab_its_own(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(house.app.state.services.connections.streams, "_most", 2)
    key, other = await house.key(), await house.key("rival")
    house.end_development_mode()
    path = f"/training-runs/{await stored(house)}/events"
    run = await stored(house, training_run_id=new_id(IdPrefix.TRAINING_RUN), lab_id="rival")
    others = f"/training-runs/{run}/events"
    async with house.client(key) as labs, listening(house) as port:
        async with streaming(port, path, key) as first, streaming(port, path, key) as second:
            assert [await anext(first), await anext(second)] == ["event: progress"] * 2
            assert_error(await labs.call("GET", path), 429, "too_many_at_once")
            async with streaming(port, others, other) as third:
                assert await anext(third) == "event: progress"
        await free(house)
        async with streaming(port, path, key) as again:
            assert await anext(again) == "event: progress"


@pytest.mark.parametrize(
    ("path", "kind", "operation"),
    [
        ("/episodes/ws", "sockets", {"op": "create", **WHERE}),
        ("/compat/openenv/ws", "sessions", {"type": "reset", "data": {**WHERE, "seed": 7}}),
    ],
)
async def test_a_lab_has_so_many_sockets_and_another_lab_its_own(
    house: House,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    kind: str,
    operation: dict[str, Any],
) -> None:
    monkeypatch.setattr(getattr(house.app.state.services.connections, kind), "_most", 2)
    key, other = await house.key(), await house.key("rival")
    house.end_development_mode()

    def opened(port: int, key: str) -> websockets.connect:
        headers = {"Authorization": f"Bearer {key}"}
        return websockets.connect(f"ws://127.0.0.1:{port}/api/v1{path}", additional_headers=headers)

    async with asyncio.timeout(WAIT_S), listening(house) as port, opened(port, key):
        async with opened(port, key):
            with pytest.raises(websockets.InvalidStatus) as refused:
                await opened(port, key)
            assert refused.value.response.status_code == 429
            told = json.loads(refused.value.response.body)
            assert told["data"]["code"] == "too_many_at_once"
            assert "2 open" in told["message"]
            assert open_sockets(house) == 2
            async with opened(port, other) as theirs:
                await theirs.send(json.dumps(operation))
                assert _is_an_observation(json.loads(await theirs.recv()))
        while sum(getattr(house.app.state.services.connections, kind)._open.values()) > 1:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        async with opened(port, key) as again:
            await again.send(json.dumps(operation))
            assert _is_an_observation(json.loads(await again.recv()))
            assert open_sockets(house) == 2
    assert open_sockets(house) == 0


async def test_an_operation_that_is_refused_is_not_read_but_for_its_ref(house: House) -> None:
    key = await house.key(rate_per_minute=1)
    house.end_development_mode()
    broken = '{"ref": "big", "op": "turn", "messages": ["' + "x" * 100_000
    async with (
        listening(house) as port,
        websockets.connect(
            f"ws://127.0.0.1:{port}/api/v1/episodes/ws", additional_headers={"Authorization": f"Bearer {key}"}
        ) as socket,
        asyncio.timeout(WAIT_S),
    ):
        for status in (400, 429):
            await socket.send(broken)
            refused = json.loads(await socket.recv())
            assert (refused["ref"], refused["status"]) == ("big", status)


async def free(house: House) -> None:
    """The server notices that a client left when it looks next."""
    async with asyncio.timeout(WAIT_S):
        while house.app.state.services.connections.streams._open:  # noqa: ASYNC110 (the server has no event for this)
            await asyncio.sleep(0.05)


def open_sockets(house: House) -> float | None:
    return house.metrics.registry.get_sample_value("labs_sockets_open")


def _is_an_observation(answer: dict[str, Any]) -> bool:
    """Of either socket; an error has neither."""
    return "episode_id" in answer or answer.get("type") == "observation"
