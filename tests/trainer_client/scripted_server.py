"""A real HTTP server on loopback that does what a script says: answer, reset, hang, drip, lie.

One step of the script is used per request; the last one is kept for all that follow. It records
every request, so a test can look at keys and bodies.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Answer:
    """Send this."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None


@dataclass(frozen=True)
class Reset:
    """Read the request, then reset the connection."""


@dataclass(frozen=True)
class Hang:
    """Read the request and say nothing until the server is closed."""


@dataclass(frozen=True)
class Truncate:
    """Promise more bytes than are sent."""


@dataclass(frozen=True)
class Drip:
    """Send one byte at a time, for ever, each in time for a timeout that is counted per read."""


Step = Answer | Reset | Hang | Truncate | Drip


@dataclass(frozen=True)
class Seen:
    """A request that arrived."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class ScriptedServer:
    def __init__(self, script: list[Step]) -> None:
        self.script = list(script)
        self.seen: list[Seen] = []
        self.closing = threading.Event()
        self.lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args: object) -> None:
                return

            def do_GET(self) -> None:
                server.handle(self)

            do_POST = do_DELETE = do_GET

        class Quiet(ThreadingHTTPServer):
            daemon_threads = False
            request_queue_size = 256

            def handle_error(self, request: object, client_address: object) -> None:
                return

        self.http = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("Content-Length") or 0)
        body = handler.rfile.read(length)
        headers = {name.lower(): value for name, value in handler.headers.items()}
        with self.lock:
            self.seen.append(Seen(handler.command, handler.path, headers, body))
            step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        handler.close_connection = True
        match step:
            case Answer():
                handler.close_connection = False
                self.answer(handler, step)
            case Reset():
                # Linger of zero makes the close a reset; shutting down here keeps the handler from flushing first.
                handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            case Hang():
                self.closing.wait()
            case Truncate():
                handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
            case Drip():
                handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                while not self.closing.wait(0.01):
                    handler.wfile.write(b" ")

    @staticmethod
    def answer(handler: BaseHTTPRequestHandler, step: Answer) -> None:
        content = step.raw if step.raw is not None else json.dumps(step.body).encode()
        handler.send_response(step.status)
        for name, value in step.headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)


@contextmanager
def serving(*script: Step) -> Iterator[ScriptedServer]:
    server = ScriptedServer(list(script))
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.http.shutdown()
        thread.join()
        server.http.server_close()


def envelope(code: str, message: str = "No.", request_id: str = "req_1", **data: Any) -> dict[str, Any]:
    return {"message": message, "data": {"request_id": request_id, "code": code, **data}}


CATALOG: dict[str, Any] = {"collections": [], "request_id": "req_ok"}


def turn_answer(turn: int = 1, reward: float = 0.5, *, complete: bool = False) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "turn": turn,
        "observation": {"role": "assistant", "content": f"reply {turn}"},
        "reward": reward,
        "reward_delta": reward,
        "episode_complete": complete,
        "request_id": f"req_{turn}",
    }
    if complete:
        answer["terminal_reason"] = "completed"
    return answer
