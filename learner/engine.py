"""The sampler of a run: this process's own weights, or vLLM, as a server or inside, given them after each update."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from learner import canary
from learner.config import Config
from learner.generate.colocated import ColocatedGenerator, Place
from learner.generate.hf import HfGenerator
from learner.generate.session import Generator
from learner.generate.vllm import EngineError, Sampling, VllmGenerator
from learner.model import Policy
from learner.models import merged, write
from learner.ranks import Ranks
from trainer_client.chat.tokens import Renderer

CANARY_TOKENS = 6


class SamplerEngine:
    """Gives generators, and keeps a foreign one up to date."""

    def __init__(
        self,
        config: Config,
        policy: Policy,
        renderer: Renderer,
        tokenizer: Any,
        folder: Path,
        *,
        sampler: Policy | None = None,
    ) -> None:
        self._config = config
        self._policy = policy
        self._sampler = sampler or policy
        self._renderer = renderer
        self._tokenizer = tokenizer
        self._folder = folder / "sync"
        self._remote = _remote(config, policy) if config.generator.kind == "vllm" else None
        self._colocated = self._inside() if config.generator.kind == "vllm_colocated" else None
        self._given = 0
        """How often the engine inside this process got weights."""

    @property
    def is_remote(self) -> bool:
        """True if a server samples, with one set of weights."""
        return self._remote is not None

    @property
    def generator(self) -> Generator:
        """The sampler."""
        return self._remote or self._colocated or self._own(self._sampler, self._config.model.max_tokens)

    def rest(self) -> None:
        """An update begins: a sampler with weights of its own on this device lets go of its memory."""
        if self._colocated is not None:
            self._colocated.rest()

    def sync(self, ranks: Ranks) -> float:
        """Send the present weights, where the sampler has its own, and try whether it speaks with them; the gap.

        Raises CanaryError where sampler and learner are not the same.
        """
        if self._colocated is not None:
            self._give(self._colocated)
            return canary.check(self._colocated, self._policy, self._renderer, self._config.generator.tolerance)
        if self._remote is None:
            return self.check_copy(self._sampler)
        if ranks.first:
            self._send(self._remote)
        elif self._config.lora.rank:
            self._remote.model = "policy"
        ranks.wait()
        return canary.check(self._remote, self._policy, self._renderer, self._config.generator.tolerance)

    def _own(self, sampler: Policy, max_tokens: int) -> HfGenerator:
        return HfGenerator(sampler, max_tokens=max_tokens, fixed_shapes=self._config.generator.fixed_shapes)

    def sync_after_update(self, ranks: Ranks) -> float | None:
        """The same after an update; None where the sampler has no weights of its own."""
        has_its_own = self._remote is not None or self._colocated is not None or self._sampler is not self._policy
        return self.sync(ranks) if has_its_own else None

    def check_copy(self, copy: Policy) -> float:
        """Try whether a policy of this process with weights of its own speaks with the present ones; the gap."""
        return canary.check(self._own(copy, CANARY_TOKENS), self._policy, self._renderer)

    def close(self) -> None:
        """Let go of a server's connections, or of the engine."""
        for each in (self._remote, self._colocated):
            if each is not None:
                each.close()

    def _send(self, remote: VllmGenerator) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._config.lora.rank:
            self._sampler.model.save_pretrained(self._folder)
            remote.send_adapters(self._folder)
            return
        write(merged(self._sampler.model), self._tokenizer, self._folder)
        remote.send_weights(self._folder)

    def _inside(self) -> ColocatedGenerator:
        """An engine that has read the model without adapters; those are given to it."""
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            raise EngineError("generator.kind = 'vllm_colocated' is for one process; use 'vllm' with a server, or 'hf'")
        path = self._config.model.path or ""
        if not self._config.lora.rank:
            path = str(self._folder / "base")
            write(self._sampler.model, self._tokenizer, self._folder / "base")
        settings, on_gpu = self._config.generator, self._policy.device.type == "cuda"
        place = Place(
            "bfloat16" if self._config.model.precision == "bfloat16" else "float32",
            settings.memory_share,
            on_gpu=on_gpu,
            sleeps=settings.sleep and on_gpu,
            adapter_rank=self._config.lora.rank,
        )
        return ColocatedGenerator(path, _sampling(self._config, self._policy), place)

    def _give(self, engine: ColocatedGenerator) -> None:
        self._given += 1
        if not self._config.lora.rank:
            engine.give_weights(self._sampler.model.named_parameters())
            return
        folder = self._folder / f"adapters-{self._given % 2}"
        shutil.rmtree(folder, ignore_errors=True)
        self._sampler.model.save_pretrained(folder)
        engine.give_adapters(folder, self._given)


def _remote(config: Config, policy: Policy) -> VllmGenerator:
    settings = config.generator
    return VllmGenerator(
        settings.url or "",
        settings.model or config.model.path or "default",
        _sampling(config, policy),
        connections=config.rollout.connections,
        api_key=os.environ.get("VLLM_API_KEY", ""),
    )


def _sampling(config: Config, policy: Policy) -> Sampling:
    return Sampling(
        end_id=policy.end_id,
        banned=tuple(policy.banned.tolist()),
        temperature=config.model.temperature,
        max_tokens=config.model.max_tokens,
        context=policy.context,
    )
