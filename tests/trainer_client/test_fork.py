"""A client made before `fork` and used on both sides: every process gets its own answers."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.trainer_client.scripted_server import turn_answer


class Echo(BaseHTTPRequestHandler):
    """Answers a turn with the name of its episode, over connections that stay open."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args: object) -> None:
        return

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        answer = turn_answer()
        answer["observation"]["content"] = self.path.split("/")[-2]
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


FORK = """
import os, sys

def in_children(play):
    children = []
    for number in range(2):
        child = os.fork()
        if child == 0:
            try:
                os._exit(0 if play(f"ep_child{number}") else 3)
            except BaseException as error:
                print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
                os._exit(4)
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
"""

SYNC = """
from trainer_client import LabsClient

client = LabsClient(sys.argv[1], max_retries=0)
fast = client.with_options(timeout=20)

def play(name):
    return all(fast.turn(name, "hello").observation.content == name for _ in range(200))

assert play("ep_before")
print(in_children(play), play("ep_after"), client.http_client.is_closed)
"""

ASYNC = """
import asyncio
from trainer_client import AsyncLabsClient

client = AsyncLabsClient(sys.argv[1], max_retries=0)

async def played(name):
    return all([(await client.turn(name, "hello")).observation.content == name for _ in range(200)])

async def main():
    assert await played("ep_before")
    # The children leave the loop of their parent alone and run their own.
    def play(name):
        asyncio._set_running_loop(None)
        return asyncio.run(played(name))
    print(in_children(play), await played("ep_after"), client.http_client.is_closed)

asyncio.run(main())
"""

OWN = """
import httpx2
from trainer_client import LabsClient

client = LabsClient(sys.argv[1], http_client=httpx2.Client())
unused = LabsClient(sys.argv[1], http_client=httpx2.Client())

def play(name):
    return client.turn(name, "hello").observation.content == name

def unused_before(name):
    return unused.turn(name, "hello").observation.content == name

assert play("ep_before")
print(in_children(play), play("ep_after"), in_children(unused_before))
"""


def forked(program: str, url: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", FORK + program, url]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("program", [SYNC, ASYNC], ids=["sync", "async"])
def test_two_children_and_their_parent_get_their_own_answers(program: str, url: str) -> None:
    done = forked(program, url)
    assert done.stdout.strip() == "[0, 0] True False", done.stderr


def test_a_client_of_the_callers_own_is_refused_in_a_child_that_would_share_its_connections(url: str) -> None:
    done = forked(OWN, url)
    assert done.stdout.strip() == "[4, 4] True [0, 0]", done.stderr
    assert done.stderr.count("BadRequest: This client was made before a fork with an `http_client`") == 2
