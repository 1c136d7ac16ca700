"""The sections of a run's configuration: every key, its type, its default and what it means."""

from __future__ import annotations

import math
import typing
from dataclasses import dataclass, field
from typing import Any, Literal

from learner.algorithms import Credit
from learner.tiny import Family

if typing.TYPE_CHECKING:
    from learner.warmup import WarmupSettings


@dataclass(frozen=True)
class ServerSection:
    """Where episodes are played."""

    url: str | None = None
    """Default: LABS_URL, else the local server."""
    collection: str = "clinical-intake"
    scenario: str = "tired-and-dizzy"
    scenarios: list[str] = field(default_factory=list)
    """A mixture in place of the one scenario: each `collection/scenario`, or a collection for all of it."""
    held_out: list[str] = field(default_factory=list)
    """Scenarios of the evaluation, never trained on. Empty: held-out seeds of those that are."""
    max_turns: int | None = 12
    system: str = "auto"
    """System prompt of the policy: `card` for the scenario's public description, `none`, or a text. `auto`: the card
    for a model of `model.path`, none for a tiny one."""
    reward_config: dict[str, Any] = field(default_factory=dict)
    """Sent with every episode, such as `{composite = {combine = "min", parts = [...]}}`."""
    patience_s: float = 600.0
    """How long a server may be away before its episodes count as failed."""


@dataclass(frozen=True)
class ModelSection:
    """The policy."""

    path: str | None = None
    """A transformers folder or hub name. None: a tiny model, made and warmed up on the spot."""
    family: Family = "llama"
    """Shape of a tiny model: `llama`, `qwen` or `gemma`."""
    layers: int = 2
    width: int = 96
    heads: int = 4
    context: int = 2048
    temperature: float = 1.0
    max_tokens: int = 32
    """Longest turn."""
    device: str = "cpu"
    threads: int = 1
    """Threads of torch on the CPU: more than one costs a tiny model more than it gives."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """What matrix products are computed in, of sampler and update alike; weights stay in float32."""
    recompute: bool = False
    """Make activations again in the backward pass: less memory, about a third more time."""
    template_options: dict[str, Any] = field(default_factory=dict)
    """Passed to the chat template, such as `{enable_thinking = false}`."""
    reference: bool = True
    """Keep a frozen copy of the first weights, for KL and fluency. An algorithm that needs it keeps it anyway."""


@dataclass(frozen=True)
class WarmupSection:
    """Scripted dialogues for a tiny model."""

    script: str = "tired-and-dizzy"
    steps: int = 200
    batch: int = 8
    turns: int = 12
    learning_rate: float = 4e-3

    def settings(self) -> WarmupSettings:
        """As the warm-up takes them."""
        from learner.warmup import WarmupSettings

        return WarmupSettings(self.steps, self.batch, self.turns, self.learning_rate)


@dataclass(frozen=True)
class RolloutSection:
    """What is played for one update."""

    groups: int = 8
    group_size: int = 8
    waves: int = 2
    """Batches that take turns with the model while the others wait for the server."""
    connections: int = 64
    max_refills: int = 3
    """With dynamic sampling: how often groups without a difference are replaced before one update."""
    max_staleness: int = 0
    """How many of the next batches are played while the present one is learned from. 0: one after the other."""
    single_turn: bool = False
    """One reply to each prompt, scored by `/batch/evaluate`, in place of whole episodes."""
    prompts: str | None = None
    """With `single_turn`: JSON lines of `{"messages": [...]}` that end with the persona; none: each seed's opening."""


@dataclass(frozen=True)
class AlgorithmSection:
    """A preset, and what of it is changed."""

    name: str = "grpo"
    credit: Credit | None = None
    """`episode` or `to_go`; None: the preset's."""
    gamma: float | None = None
    """With `to_go`: how much a gain counts one turn earlier. None: the preset's."""
    entropy: float = 0.0
    dimensions: dict[str, float] = field(default_factory=dict)
    """Weights of the scores for an algorithm that takes each dimension by itself."""
    overrides: dict[str, Any] = field(default_factory=dict)
    """Fields of the objective."""


@dataclass(frozen=True)
class OptimSection:
    """The optimiser."""

    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    clip_norm: float = 1.0
    minibatches: int = 1
    micro_tokens: int = 4_096
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """How the learning rate falls from its full value to `final_share` of it over the updates of the run."""
    warmup_updates: int = 0
    """Updates over which the learning rate rises to its full value."""
    final_share: float = 0.0
    non_finite: Literal["stop", "skip"] = "stop"
    """What to do with a step whose gradient is not a number."""

    def rate(self, step: int, updates: int) -> float:
        """The learning rate of update `step`, counted from 1."""
        if step <= self.warmup_updates:
            return self.learning_rate * step / self.warmup_updates
        done = min(1.0, (step - self.warmup_updates - 1) / max(updates - self.warmup_updates - 1, 1))
        left = {"constant": 1.0, "linear": 1.0 - done, "cosine": 0.5 * (1.0 + math.cos(math.pi * done))}[self.schedule]
        return self.learning_rate * (self.final_share + (1.0 - self.final_share) * left)


@dataclass(frozen=True)
class DataSection:
    """A file to learn from, for algorithms that need no server."""

    file: str | None = None
    """JSON lines: conversations for `sft`, pairs for `dpo` and `ipo`."""
    batch: int = 16
    """Rows per update."""
    micro: int = 4
    """Rows per forward pass."""
    held_out_share: float = 0.1


@dataclass(frozen=True)
class EvaluationSection:
    """Held-out seeds: never trained on."""

    every: int = 10
    episodes: int = 64
    samples: int = 2
    """Transcripts kept of each evaluation at the start and the end."""
    stop_after: int = 0
    """End the run after so many evaluations without a better one; 0: never."""


@dataclass(frozen=True)
class RunSection:
    """The run as a whole."""

    updates: int = 60
    seed: int = 0
    checkpoint_every: int = 20
    keep: int = 2


@dataclass(frozen=True)
class LoraSection:
    """Low-rank adapters on a frozen model, which is then the reference at no cost. Needs `pip install peft`."""

    rank: int = 0
    """0: no adapters, all weights are trained."""
    alpha: int = 32
    targets: list[str] = field(default_factory=lambda: ["all-linear"])
    """Names of layers, or `all-linear`: every linear layer but the head."""


@dataclass(frozen=True)
class GeneratorSection:
    """Who samples."""

    kind: Literal["hf", "vllm"] = "hf"
    """`hf`: this process, with the weights that are trained. `vllm`: a server, which is sent them after each update."""
    url: str | None = None
    """Address of the vLLM server. A key is read from VLLM_API_KEY."""
    model: str | None = None
    """Its name there; none: `model.path`."""
    tolerance: float | None = None
    """How far sampler and learner may be apart in a log-probability; none: 1e-3, or .1 in 16 bits."""


@dataclass(frozen=True)
class ParallelSection:
    """Where weights, gradients and the optimiser's state lie, when several processes make a run."""

    kind: Literal["replicate", "fsdp", "deepspeed"] = "replicate"
    """`replicate`: each process holds all. `fsdp`, `deepspeed`: a part, and one whole copy to sample from."""
    zero_stage: int = 2
    """With `deepspeed`: 1 spreads the optimiser's state, 2 gradients as well, 3 weights as well."""


@dataclass(frozen=True)
class LogSection:
    """Where metrics go beside `metrics.jsonl`."""

    tensorboard: bool = False
    """Write event files into `tensorboard/` of the run. Needs `pip install tensorboard`."""
    wandb: Literal["off", "offline", "online"] = "off"
    """Weights & Biases; `offline` writes into `wandb/` of the run, for `wandb sync`. Needs `pip install wandb`."""
    wandb_project: str = "labs"
