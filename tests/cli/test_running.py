"""Who counts as a Labs server at an address."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from reward_server.cli.running import labs_at, url_of


@contextmanager
def answering(status: int, headers: dict[str, str], body: bytes) -> Iterator[int]:
    """The port of a server that always answers that."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


OURS = json.dumps({"status": "ok", "request_id": "req_1"}).encode()


@pytest.mark.parametrize(
    ("status", "headers", "body", "is_labs"),
    [
        (200, {"X-Request-ID": "req_1"}, OURS, True),
        (200, {}, OURS, False),
        (200, {"X-Request-ID": "req_2"}, b'{"status": "ok"}', False),
        (200, {"X-Request-ID": "req_1"}, b"<html>", False),
        (200, {}, b"[]", False),
        (404, {"X-Request-ID": "req_1"}, OURS, False),
    ],
)
def test_who_answers_as_our_probe_does(status: int, headers: dict[str, str], body: bytes, is_labs: bool) -> None:
    with answering(status, headers, body) as port:
        assert labs_at("0.0.0.0", port) == (f"http://127.0.0.1:{port}" if is_labs else None)


def test_nobody_there_is_nobody() -> None:
    with answering(200, {}, b"") as port:
        pass
    assert labs_at("127.0.0.1", port) is None
    assert labs_at("no such host", 1) is None


def test_the_address_to_type() -> None:
    assert url_of("::", 1) == "http://127.0.0.1:1"
    assert url_of("::1", 1) == "http://[::1]:1"
    assert url_of("labs.example", 1) == "http://labs.example:1"
