"""A server on loopback that answers `/classify` and `/pooling` as a script says."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Script = Callable[[dict[str, Any]], tuple[int, Any]]
"""The request's body to a status and the answer: JSON, or bytes as they are."""


class Endpoint:
    """`with Endpoint(script) as url:`; what was asked is in `asked`, with the headers in `headers`."""

    def __init__(self, script: Script) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.asked.append(body)
                outer.headers.append({name.lower(): value for name, value in self.headers.items()})
                status, answer = script(body)
                content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                if status == 307:
                    self.send_header("Location", self.path)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def classified(*outputs: float) -> tuple[int, Any]:
    """An answer of `/classify`."""
    return 200, {"data": [{"index": 0, "label": "LABEL_0", "probs": list(outputs), "num_classes": len(outputs)}]}


def pooled(data: Any) -> tuple[int, Any]:
    """An answer of `/pooling`."""
    return 200, {"data": [{"index": 0, "object": "pooling", "data": data}]}
