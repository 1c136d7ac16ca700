"""`client.socket()` against a real server: the same rewards and errors as HTTP, and no turn lost or played twice."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress

import httpx2
import pytest

from tests.faults.server_process import WHERE, ServerProcess, server_process
from trainer_client import (
    AsyncLabsClient,
    BadRequest,
    ConnectionFailed,
    EpisodeComplete,
    HistoryMismatch,
    IdempotencyMismatch,
    LabsClient,
    NotFound,
    PayloadTooLarge,
    RetryPolicy,
    Unauthenticated,
)

pytestmark = pytest.mark.slow

COLLECTION, SCENARIO = WHERE["collection_slug"], WHERE["scenario_slug"]
ASK = "Good morning. How did it happen?"
QUICK = RetryPolicy(first_pause_s=0.01, longest_pause_s=0.05)
ONCE = RetryPolicy(attempts=1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with server_process(tmp_path_factory.mktemp("socket"), keys=("acme",)) as running:
        yield running


def client(server: ServerProcess, url: str | None = None, retry: RetryPolicy = QUICK) -> AsyncLabsClient:
    return AsyncLabsClient(url or server.url, server.keys["acme"], retry=retry)


class Relay:
    """Stands between client and server; cuts a connection instead of passing on the next answer, on demand."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.connections = 0
        self.cuts = 0
        self.serving: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.serving.add(task)
        self.connections += 1
        there, back = await asyncio.open_connection("127.0.0.1", self.port)
        out = asyncio.create_task(self.pass_on(reader, back))
        with suppress(ConnectionError):
            while data := await there.read(65_536):
                if self.cuts > 0:
                    self.cuts -= 1
                    break
                writer.write(data)
                await writer.drain()
        out.cancel()
        for each in (writer, back):
            each.close()
            with suppress(ConnectionError):
                await each.wait_closed()

    async def pass_on(self, reader: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                back.write(data)
                await back.drain()
        back.close()


@asynccontextmanager
async def relayed(server: ServerProcess) -> AsyncIterator[tuple[Relay, str]]:
    relay = Relay(server.port)
    listening = await asyncio.start_server(relay.serve, "127.0.0.1", 0)
    yield relay, f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    listening.close()
    await asyncio.gather(*relay.serving)


async def test_an_episode_over_a_socket_is_what_it_is_over_http(server: ServerProcess) -> None:
    async with client(server) as http, http.socket() as socket:
        ours = await socket.create_episode(COLLECTION, SCENARIO, seed=7, persona="plainspoken")
        theirs = await http.create_episode(COLLECTION, SCENARIO, seed=7, persona="plainspoken")
        assert ours.initial_observation == theirs.initial_observation
        turns = [await each.turn(e.episode_id, ASK) for each, e in ((socket, ours), (http, theirs))]
        assert turns[0].model_copy(update={"request_id": ""}) == turns[1].model_copy(update={"request_id": ""})
        ended = await socket.delete_episode(ours.episode_id)
        assert (ended.status, ended.rewards) == ("complete", [turns[0].reward])


async def test_more_episodes_than_fit_at_once_share_one_connection(server: ServerProcess) -> None:
    async with relayed(server) as (relay, url), client(server, url) as http, http.socket() as socket:
        episodes = await asyncio.gather(*(socket.create_episode(COLLECTION, SCENARIO, seed=n) for n in range(150)))
        turns = await asyncio.gather(*(socket.turn(each.episode_id, ASK) for each in episodes))
        assert relay.connections == 1
        # Every answer is of its own episode.
        for each, turn in list(zip(episodes, turns, strict=True))[::30]:
            assert (await http.get_episode(each.episode_id)).messages[-1].content == turn.observation.content
    assert {turn.turn for turn in turns} == {1}


async def test_refusals_are_the_clients_own_errors(server: ServerProcess) -> None:
    async with client(server) as http, http.socket() as socket:
        with pytest.raises(NotFound) as caught:
            await socket.create_episode(COLLECTION, "no-such-scenario")
        assert (caught.value.code, caught.value.status) == ("scenario_not_found", 404)
        assert str(caught.value.request_id).startswith("req_")
        assert caught.value.host == server.url.removeprefix("http://")
        episode = await socket.create_episode(COLLECTION, SCENARIO, seed=1)
        with pytest.raises(BadRequest, match="content"):
            await socket.turn(episode.episode_id, "x" * 10_001)
        forged = [{"role": "user", "content": "something else"}, {"role": "assistant", "content": "hello"}]
        with pytest.raises(HistoryMismatch):
            await socket.turn(episode.episode_id, forged)
        await socket.turn(episode.episode_id, ASK, idempotency_key="k")
        with pytest.raises(IdempotencyMismatch):
            await socket.turn(episode.episode_id, "Another.", idempotency_key="k")
        with pytest.raises(PayloadTooLarge):
            await socket.turn(episode.episode_id, [{"role": "assistant", "content": "é" * 9_000}] * 130)
        await socket.delete_episode(episode.episode_id)
        with pytest.raises(EpisodeComplete):
            await socket.turn(episode.episode_id, ASK)


async def test_a_wrong_key_is_refused_at_once(server: ServerProcess) -> None:
    async with AsyncLabsClient(server.url, "lab_wrong") as http, http.socket() as socket:
        with pytest.raises(Unauthenticated) as caught:
            await socket.create_episode(COLLECTION, SCENARIO)
    assert caught.value.status == 401


async def test_a_connection_that_breaks_is_made_again_and_no_turn_is_played_twice(server: ServerProcess) -> None:
    async with relayed(server) as (relay, url), client(server, url) as http, http.socket() as socket:
        episodes = await asyncio.gather(*(socket.create_episode(COLLECTION, SCENARIO, seed=n) for n in range(20)))
        for number in range(1, 4):
            relay.cuts = 1
            turns = await asyncio.gather(*(socket.turn(each.episode_id, ASK) for each in episodes))
            assert {turn.turn for turn in turns} == {number}
        assert relay.connections == 4
    async with client(server) as http:
        assert {(await http.get_episode(each.episode_id)).turn for each in episodes} == {3}


async def test_without_retries_a_break_is_an_error_and_the_next_call_connects_again(server: ServerProcess) -> None:
    async with relayed(server) as (relay, url), client(server, url, ONCE) as http, http.socket() as socket:
        episode = await socket.create_episode(COLLECTION, SCENARIO, seed=1)
        relay.cuts = 1
        with pytest.raises(ConnectionFailed, match="broke"):
            await socket.turn(episode.episode_id, ASK, idempotency_key="first")
        assert (await socket.turn(episode.episode_id, ASK, idempotency_key="first")).turn == 1
        await socket.close()
        assert (await socket.turn(episode.episode_id, ASK)).turn == 2


async def test_nobody_listening_is_a_failed_connection() -> None:
    async with AsyncLabsClient("http://127.0.0.1:1", retry=ONCE) as http, http.socket() as socket:
        with pytest.raises(ConnectionFailed):
            await socket.create_episode(COLLECTION, SCENARIO)


async def test_who_gives_up_costs_the_others_nothing(server: ServerProcess) -> None:
    async with relayed(server) as (relay, url), client(server, url) as http, http.socket() as socket:
        first = asyncio.create_task(socket.create_episode(COLLECTION, SCENARIO, seed=1))
        others = [asyncio.create_task(socket.create_episode(COLLECTION, SCENARIO, seed=2)) for _ in range(5)]
        await asyncio.sleep(0)
        first.cancel()
        assert len({each.episode_id for each in await asyncio.gather(*others)}) == 5
        assert relay.connections == 1


def test_threads_share_a_synchronous_socket(server: ServerProcess) -> None:
    before = threading.active_count()
    with LabsClient(server.url, server.keys["acme"]) as http, http.socket() as socket:

        def played(seed: int) -> float:
            episode = socket.create_episode(COLLECTION, SCENARIO, seed=seed)
            return socket.turn(episode.episode_id, ASK).reward

        with ThreadPoolExecutor(8) as pool:
            rewards = list(pool.map(played, range(16)))
        with pytest.raises(NotFound):
            socket.delete_episode("ep_x")
        expected = http.create_episode(COLLECTION, SCENARIO, seed=3)
        assert rewards[3] == http.turn(expected.episode_id, ASK).reward
    assert threading.active_count() == before
    with pytest.raises(ValueError, match="AsyncLabsClient"):
        LabsClient(server.url, http_client=httpx2.Client()).socket()


FORKED = """
import os, sys
from trainer_client import LabsClient

client = LabsClient(sys.argv[1])
socket = client.socket()

def play(seed):
    episode = socket.create_episode("bike-shop", "flat-tyre", seed=seed)
    return [socket.turn(episode.episode_id, "How did it happen?").turn for _ in range(3)] == [1, 2, 3]

assert play(0)
children = []
for seed in (1, 2):
    child = os.fork()
    if child == 0:
        os._exit(0 if play(seed) else 3)
    children.append(child)
ended = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
print(ended, play(3))
socket.close()
"""


def test_a_forked_process_gets_a_socket_of_its_own(server: ServerProcess) -> None:
    environment = {**os.environ, "LABS_API_KEY": server.keys["acme"]}
    command = [sys.executable, "-c", FORKED, server.url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert done.stdout.strip() == "[0, 0] True", done.stderr


def test_without_the_extra_the_error_says_what_to_install() -> None:
    program = "import sys; sys.modules['wsproto'] = None; import trainer_client; trainer_client.LabsClient().socket()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].endswith("install the client as `labs-trainer-client[socket]`")
