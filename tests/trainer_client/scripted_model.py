"""An OpenAI-compatible server on loopback whose answers are written down beforehand."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextmanager
def model(*answers: str | int | dict[str, Any]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A server that gives these answers in turn (texts, messages or HTTP statuses), and the last one from then on."""
    left, asked = list(answers), []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            answer = left.pop(0) if len(left) > 1 else left[0]
            message = answer if isinstance(answer, dict) else {"role": "assistant", "content": answer}
            body = json.dumps({"choices": [{"message": message}]}).encode()
            self.send_response(answer if isinstance(answer, int) else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
