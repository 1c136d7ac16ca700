"""Sampling by a vLLM server over HTTP: token ids in, ids and log-probabilities out, weights sent after each update.

Start it so that log-probabilities are those of the distribution that is sampled from, and weights may change:

    VLLM_SERVER_DEV_MODE=1 VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 vllm serve FOLDER --logprobs-mode processed_logprobs \\
        --enable-lora --max-lora-rank 16

With adapters, a folder of them is loaded in place of the last; else the whole model is written, and generation pauses
while vLLM reads it. Both need a folder that the two see. Whether the new weights speak is not believed but tried
(`canary`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx2
import numpy as np

from learner.generate.session import Completion, Continuation

ATTEMPTS = 5
PAUSE_S = 1.0
ADAPTER = "policy"


class EngineError(RuntimeError):
    """The engine does not answer, or not what it should."""


@dataclass(frozen=True)
class Sampling:
    """The distribution that is sampled from."""

    end_id: int
    banned: tuple[int, ...] = ()
    temperature: float = 1.0
    max_tokens: int = 256
    context: int | None = None


class VllmGenerator:
    """Starts sessions on a server; conversations are kept here, their keys and values in its prefix cache."""

    def __init__(
        self,
        url: str,
        model: str,
        sampling: Sampling,
        *,
        connections: int = 64,
        timeout_s: float = 600.0,
        api_key: str = "",
        pause_s: float = PAUSE_S,
    ) -> None:
        self.model = model
        self.sampling = sampling
        self._url = url.rstrip("/").removesuffix("/v1")
        self._pause_s = pause_s
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = httpx2.Client(timeout=timeout_s, headers=headers, trust_env=False)
        self.pool = ThreadPoolExecutor(connections, thread_name_prefix="vllm")

    @property
    def context(self) -> int | None:
        """Longest conversation in tokens, the next turn included."""
        return self.sampling.context

    @property
    def max_tokens(self) -> int:
        """Longest turn."""
        return self.sampling.max_tokens

    def start(self) -> VllmSession:
        """A session without conversations."""
        return VllmSession(self)

    def close(self) -> None:
        """Let go of threads and connections."""
        self.pool.shutdown()
        self._client.close()

    def __enter__(self) -> Self:
        """Closed at the end."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def send_adapters(self, folder: Path) -> None:
        """Speak with the adapters of a folder from here on."""
        body = {"lora_name": ADAPTER, "lora_path": str(folder.resolve()), "load_inplace": True}
        self.post("/v1/load_lora_adapter", body)
        self.model = ADAPTER

    def send_weights(self, folder: Path) -> None:
        """Speak with the weights of a folder from here on; nothing is generated meanwhile."""
        self.post("/pause?mode=keep")
        try:
            arguments = {"weights_path": str(folder.resolve())}
            self.post("/collective_rpc", {"method": "reload_weights", "kwargs": arguments})
            # What the old weights made of a prefix is not what the new ones do.
            self.post("/reset_prefix_cache")
        finally:
            self.post("/resume")

    def complete(self, ids: list[int], noise: np.random.SeedSequence) -> Completion:
        """The policy's next turn after these tokens."""
        wanted = self.sampling
        answer = self.post(
            "/v1/completions",
            {
                "model": self.model,
                "prompt": ids,
                "max_tokens": wanted.max_tokens,
                "temperature": wanted.temperature,
                "top_p": 1.0,
                "seed": int(noise.generate_state(1)[0]),
                "logprobs": 0,
                "return_token_ids": True,
                "stop_token_ids": [wanted.end_id],
                "skip_special_tokens": False,
                "logit_bias": {str(token): -100.0 for token in wanted.banned},
            },
        )
        try:
            choice = answer["choices"][0]
            said, logp = choice["token_ids"], choice["logprobs"]["token_logprobs"]
            completion = Completion(
                tuple(map(int, said)), tuple(min(float(each), 0.0) for each in logp), said[-1] == wanted.end_id
            )
        except (KeyError, IndexError, TypeError, ValueError):
            raise EngineError(f"{self._url} returns no token ids and log-probabilities; is it a vLLM server?") from None
        if len(completion.ids) != len(completion.logp):
            raise EngineError(
                f"{self._url} returned {len(completion.ids)} tokens and {len(completion.logp)} log-probabilities"
            )
        return completion

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The answer to a call; a server that is busy or away is asked again a few times."""
        for attempt in range(ATTEMPTS):
            try:
                answer = self._client.post(self._url + path, json=body)
            except httpx2.HTTPError as error:
                problem = f"does not answer ({type(error).__name__})"
            else:
                if answer.status_code == 200:
                    return answer.json() if "json" in answer.headers.get("content-type", "") else answer.text
                problem = f"returned {answer.status_code} for {path}: {answer.text[:200]}"
                if answer.status_code not in (429, 500, 502, 503, 504):
                    break
            if attempt < ATTEMPTS - 1:
                time.sleep(self._pause_s * 2**attempt)
        raise EngineError(f"generator.url: {self._url} {problem}")


class VllmSession:
    """Conversations of one wave."""

    def __init__(self, generator: VllmGenerator) -> None:
        self._generator = generator
        self._ids: dict[int, list[int]] = {}

    def step(self, continuations: Mapping[int, Continuation]) -> dict[int, Completion]:
        """Continue these conversations, all at once: vLLM makes its own batches."""
        for number, each in continuations.items():
            kept = [] if each.fresh else self._ids.get(number, [])
            self._ids[number] = [*kept, *each.ids]
        complete: Callable[[int], Completion] = lambda number: self._generator.complete(  # noqa: E731
            self._ids[number], continuations[number].noise
        )
        found = dict(zip(continuations, self._generator.pool.map(complete, continuations), strict=True))
        for number, completion in found.items():
            self._ids[number] += completion.ids
        return found
