"""A server on loopback that answers POSTs as a function says, and closed or silent ones; for OpenAI's two shapes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Answerer = Callable[[dict[str, Any]], Any]


class Served:
    """What answers: JSON, `bytes` as they are, an `int` for a status, "hang" to begin and wait, "cut" to close."""

    def __init__(self, answer: Answerer) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.over = threading.Event()
        served = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                served.bodies.append(body)
                served.paths.append(self.path)
                served.headers.append(dict(self.headers))
                served.say(self, answer(body))

            def log_message(self, *args: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def say(self, handler: BaseHTTPRequestHandler, said: Any) -> None:
        if said == "cut":
            handler.connection.close()
            return
        status = said if isinstance(said, int) else 200
        raw = said if isinstance(said, bytes) else json.dumps({} if isinstance(said, int) else said).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(raw) + (1000 if said == "hang" else 0)))
        handler.end_headers()
        handler.wfile.write(raw)
        handler.wfile.flush()
        if said == "hang":
            self.over.wait(20)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()


def chat_answer(alternatives: dict[str, float], **more: Any) -> dict[str, Any]:
    """A completion of one token with these log-probabilities."""
    rows = [{"token": token, "logprob": logprob} for token, logprob in alternatives.items()]
    first = rows[0]["token"] if rows else ""
    choice = {
        "index": 0,
        "finish_reason": "length",
        "message": {"role": "assistant", "content": first},
        "logprobs": {"content": [{"token": first, "logprob": 0.0, "top_logprobs": rows}]},
    }
    usage = {"prompt_tokens": 50, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 40}}
    return {"id": "1", "object": "chat.completion", "model": "m-1", "choices": [choice | more], "usage": usage}
