"""The sampler of a run: this process's own weights, or a vLLM server that is sent them after each update."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from learner import canary
from learner.config import Config
from learner.generate.hf import HfGenerator
from learner.generate.session import Generator
from learner.generate.vllm import Sampling, VllmGenerator
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

    @property
    def is_remote(self) -> bool:
        """True if a server samples, with one set of weights."""
        return self._remote is not None

    @property
    def generator(self) -> Generator:
        """The sampler."""
        return self._remote or self._own(self._sampler, self._config.model.max_tokens)

    def sync(self, ranks: Ranks) -> float:
        """Send the present weights, where the sampler has its own, and try whether it speaks with them; the gap.

        Raises CanaryError where sampler and learner are not the same.
        """
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
        return None if self._remote is None and self._sampler is self._policy else self.sync(ranks)

    def check_copy(self, copy: Policy) -> float:
        """Try whether a policy of this process with weights of its own speaks with the present ones; the gap."""
        return canary.check(self._own(copy, CANARY_TOKENS), self._policy, self._renderer)

    def close(self) -> None:
        """Let go of a server's connections."""
        if self._remote is not None:
            self._remote.close()

    def _send(self, remote: VllmGenerator) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._config.lora.rank:
            self._sampler.model.save_pretrained(self._folder)
            remote.send_adapters(self._folder)
            return
        write(merged(self._sampler.model), self._tokenizer, self._folder)
        remote.send_weights(self._folder)


def _remote(config: Config, policy: Policy) -> VllmGenerator:
    settings = config.generator
    sampling = Sampling(
        end_id=policy.end_id,
        banned=tuple(policy.banned.tolist()),
        temperature=config.model.temperature,
        max_tokens=config.model.max_tokens,
        context=policy.context,
    )
    return VllmGenerator(
        settings.url or "",
        settings.model or config.model.path or "default",
        sampling,
        connections=config.rollout.connections,
        api_key=os.environ.get("VLLM_API_KEY", ""),
    )
