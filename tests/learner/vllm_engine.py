"""A stand-in for the `vllm` package that samples with a real tiny model, and knows when it sleeps."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from learner.generate.hf import HfGenerator
from learner.generate.session import Continuation
from learner.lora import loaded_adapters
from learner.model import Policy
from learner.models import load


class LLM:
    """What vLLM 0.32 does with these calls, as far as the learner uses it."""

    made: ClassVar[list[LLM]] = []

    def __init__(self, *, model: str, **options: Any) -> None:
        self.folder, self.options, self.calls = model, options, list[str]()
        self.model: Any = load(model)[0].eval()
        self.asleep = False
        self.llm_engine = SimpleNamespace(engine_core=SimpleNamespace(shutdown=lambda: self.calls.append("shutdown")))
        LLM.made.append(self)

    def sleep(self, level: int) -> None:
        assert not self.asleep
        self.calls.append(f"sleep {level}")
        self.asleep = True

    def wake_up(self) -> None:
        assert self.asleep
        self.calls.append("wake_up")
        self.asleep = False

    def collective_rpc(self, method: str, kwargs: dict[str, Any]) -> None:
        assert not self.asleep
        assert method == "reload_weights"
        self.calls.append(method)
        own = dict(self.model.named_parameters())
        for name, value in kwargs["weights_iterator"]:
            own[name].data.copy_(value)

    def reset_prefix_cache(self) -> None:
        self.calls.append("reset_prefix_cache")

    def generate(self, rows: list[Any], wanted: list[Any], *, use_tqdm: bool, lora_request: Any) -> list[Any]:
        assert not self.asleep
        self.calls.append("generate")
        model = self.model if lora_request is None else loaded_adapters(load(self.folder)[0], lora_request.path).eval()
        return [_answer(model, row["prompt_token_ids"], each) for row, each in zip(rows, wanted, strict=True)]


def _answer(model: Any, ids: list[int], wanted: SimpleNamespace) -> Any:
    [end] = wanted.stop_token_ids
    policy = Policy(model, end_id=end, banned=list(wanted.logit_bias), temperature=wanted.temperature, packs=False)
    session = HfGenerator(policy, max_tokens=wanted.max_tokens).start()
    said = session.step({0: Continuation(ids, np.random.SeedSequence(wanted.seed))})[0]
    logprobs = [{token: SimpleNamespace(logprob=value)} for token, value in zip(said.ids, said.logp, strict=True)]
    return SimpleNamespace(outputs=[SimpleNamespace(token_ids=said.ids, logprobs=logprobs)])


def request(name: str, number: int, path: str) -> SimpleNamespace:
    """`vllm.lora.request.LoRARequest`."""
    assert number >= 1
    return SimpleNamespace(name=name, number=number, path=Path(path))


@contextmanager
def installed(patch: pytest.MonkeyPatch) -> Iterator[list[LLM]]:
    """The package as if it were installed; the engines that were made."""
    package, lora, requests = ModuleType("vllm"), ModuleType("vllm.lora"), ModuleType("vllm.lora.request")
    package.__spec__ = SimpleNamespace(name="vllm")  # type: ignore[assignment]
    package.LLM, package.SamplingParams = LLM, SimpleNamespace  # type: ignore[attr-defined]
    requests.LoRARequest = request  # type: ignore[attr-defined]
    for module in (package, lora, requests):
        patch.setitem(sys.modules, module.__name__, module)
    torch.set_num_threads(1)
    LLM.made.clear()
    yield LLM.made
