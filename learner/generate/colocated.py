"""Sampling by a vLLM engine inside this process, on the GPU that learns.

It gets weights from memory. While the learner updates, it lets go of its own and of its cache (`sleep`); it wakes when
it is asked for turns or given weights. vLLM must be installed beside the learner. Whether the new weights speak is not
believed but tried (`canary`), as with a server.
"""

from __future__ import annotations

import importlib.util
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from learner.generate.session import Completion, Continuation
from learner.generate.vllm import ADAPTER, EngineError, Sampling

_RANKS = (8, 16, 32, 64, 128, 256)
"""Of adapters, as vLLM has them."""


@dataclass(frozen=True)
class Place:
    """What the engine may take of the machine, and what it samples with."""

    dtype: str
    memory_share: float
    on_gpu: bool
    sleeps: bool
    """Needs a GPU."""
    adapter_rank: int = 0


class ColocatedGenerator:
    """Starts sessions on an engine of this process; conversations are kept here."""

    def __init__(self, model: str, sampling: Sampling, place: Place) -> None:
        """Load a model: a folder, or its name on the hub."""
        if importlib.util.find_spec("vllm") is None:
            raise EngineError(
                "generator.kind = 'vllm_colocated' needs vLLM beside the learner: run `pip install vllm`, or use 'vllm'"
                " with a server in an environment of its own"
            )
        # The engine's own process could not be given weights from memory.
        os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
        import vllm

        self.sampling = sampling
        self._vllm: Any = vllm
        self._place = place
        self._lock = threading.Lock()
        self._is_asleep = False
        self._adapters: Any = None
        self._engine: Any = vllm.LLM(
            model=model,
            dtype=place.dtype,
            max_model_len=sampling.context,
            gpu_memory_utilization=place.memory_share,
            enforce_eager=not place.on_gpu,
            enable_sleep_mode=place.sleeps,
            enable_prefix_caching=True,
            # The distribution that is sampled from, and not that of the bare model.
            logprobs_mode="processed_logprobs",
            skip_tokenizer_init=True,
            **_for_adapters(place.adapter_rank),
        )

    @property
    def context(self) -> int | None:
        """Longest conversation in tokens, the next turn included."""
        return self.sampling.context

    @property
    def max_tokens(self) -> int:
        """Longest turn."""
        return self.sampling.max_tokens

    def start(self) -> ColocatedSession:
        """A session without conversations."""
        return ColocatedSession(self)

    def rest(self) -> None:
        """Give the memory to the learner until turns are asked for or weights are given."""
        with self._lock:
            if self._place.sleeps and not self._is_asleep:
                self._engine.sleep(level=1)
                self._is_asleep = True

    def give_weights(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Speak with these weights, named as in the model's folder, from here on."""
        with self._lock, torch.no_grad():
            self._wake()
            self._engine.collective_rpc("reload_weights", kwargs={"weights_iterator": iter(weights)})
            # What the old weights made of a prefix is not what the new ones do.
            self._engine.reset_prefix_cache()

    def give_adapters(self, folder: Path, number: int) -> None:
        """Speak with the adapters of a folder from here on; `number` is new each time, from 1."""
        from vllm.lora.request import LoRARequest

        with self._lock:
            self._wake()
            self._adapters = LoRARequest(f"{ADAPTER}-{number}", number, str(folder.resolve()))
            self._engine.reset_prefix_cache()

    def complete(self, prompts: Sequence[Sequence[int]], seeds: Sequence[int]) -> list[Completion]:
        """The policy's next turn after each of these rows of tokens."""
        wanted = [self._parameters(seed) for seed in seeds]
        rows = [{"prompt_token_ids": list(ids)} for ids in prompts]
        with self._lock:
            self._wake()
            answers = self._engine.generate(rows, wanted, use_tqdm=False, lora_request=self._adapters)
        return [self._completion(answer.outputs[0]) for answer in answers]

    def close(self) -> None:
        """Let go of the engine and its memory."""
        self._engine.llm_engine.engine_core.shutdown()

    def _wake(self) -> None:
        if self._is_asleep:
            self._engine.wake_up()
            self._is_asleep = False

    def _parameters(self, seed: int) -> Any:
        wanted = self.sampling
        return self._vllm.SamplingParams(
            max_tokens=wanted.max_tokens,
            temperature=wanted.temperature,
            top_p=1.0,
            seed=seed,
            logprobs=0,
            stop_token_ids=[wanted.end_id],
            logit_bias={token: -100.0 for token in wanted.banned},
            detokenize=False,
        )

    def _completion(self, said: Any) -> Completion:
        ids = tuple(map(int, said.token_ids))
        logp = tuple(min(float(at[token].logprob), 0.0) for token, at in zip(ids, said.logprobs, strict=True))
        return Completion(ids, logp, bool(ids) and ids[-1] == self.sampling.end_id)


class ColocatedSession:
    """Conversations of one wave."""

    def __init__(self, generator: ColocatedGenerator) -> None:
        self._generator = generator
        self._ids: dict[int, list[int]] = {}

    def step(self, continuations: Mapping[int, Continuation]) -> dict[int, Completion]:
        """Continue these conversations, all in one call: vLLM makes its own batches."""
        for number, each in continuations.items():
            kept = [] if each.fresh else self._ids.get(number, [])
            self._ids[number] = [*kept, *each.ids]
        seeds = [int(each.noise.generate_state(1)[0]) for each in continuations.values()]
        said = self._generator.complete([self._ids[number] for number in continuations], seeds)
        found = dict(zip(continuations, said, strict=True))
        for number, completion in found.items():
            self._ids[number] += completion.ids
        return found


def _for_adapters(rank: int) -> dict[str, Any]:
    if not rank:
        return {}
    return {"enable_lora": True, "max_loras": 1, "max_lora_rank": next(each for each in _RANKS if each >= rank)}
