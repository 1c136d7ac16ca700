"""The sections of a run's configuration: every key, its type, its default and what it means.

Where the type includes None, the file and `--set` unset a key with `"none"`.
"""

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
    """None: LABS_URL, else the local server."""
    collection: str = "clinical-intake"
    scenario: str = "tired-and-dizzy"
    scenarios: list[str] = field(default_factory=list)
    """Several scenarios instead of the one: each `collection/scenario`, or a collection for all its scenarios."""
    held_out: list[str] = field(default_factory=list)
    """Scenarios for evaluation only. Empty: evaluate on held-out seeds of the training scenarios."""
    max_turns: int | None = 12
    """Most turns of an episode. `"none"`: as many as the scenario allows."""
    system: str = "auto"
    """System prompt of the policy: `card` for the scenario's public description, `none`, or a text. `auto`: the card
    if `model.path` is set, none for a tiny model."""
    reward_config: dict[str, Any] = field(default_factory=dict)
    """Sent with every episode, such as `{composite = {combine = "min", parts = [...]}}`."""
    patience_s: float = 600.0
    """How long to wait for a server that does not answer before episodes count as failed."""


@dataclass(frozen=True)
class ModelSection:
    """The policy."""

    path: str | None = None
    """A transformers folder or hub name. None: a tiny model, built and warmed up at the start of the run."""
    family: Family = "llama"
    """Architecture of a tiny model: `llama`, `qwen` or `gemma`."""
    layers: int = 2
    width: int = 96
    heads: int = 4
    context: int = 2048
    temperature: float = 1.0
    top_p: float = 1.0
    """Sample from the likeliest tokens that have this probability together. 1: from all."""
    top_k: int = 0
    """Sample from so many of the likeliest tokens. 0: from all."""
    max_tokens: int = 32
    """Maximum length of a turn, in tokens. Default with `path`: 256."""
    device: str = "cpu"
    threads: int = 1
    """Threads of torch on the CPU. For a tiny model, more than one is slower."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Precision of matrix products, in sampler and update; weights stay in float32."""
    recompute: bool = False
    """Compute activations again in the backward pass: less memory, about a third more time."""
    compile: bool = False
    """Compile the layers with torch for the update (fused kernels). Takes up to a minute at the start of a run."""
    template_options: dict[str, Any] = field(default_factory=dict)
    """Passed to the chat template, such as `{enable_thinking = false}`."""
    reference: bool = True
    """Keep a frozen copy of the initial weights, for KL and fluency. Algorithms that need it keep it anyway."""


@dataclass(frozen=True)
class WarmupSection:
    """Scripted dialogues for a tiny model."""

    script: str = "tired-and-dizzy"
    steps: int = 200
    batch: int = 8
    turns: int = 12
    learning_rate: float = 4e-3

    def settings(self) -> WarmupSettings:
        """The same, for the warm-up."""
        from learner.warmup import WarmupSettings

        return WarmupSettings(self.steps, self.batch, self.turns, self.learning_rate)


@dataclass(frozen=True)
class RolloutSection:
    """The episodes of one update."""

    groups: int = 8
    group_size: int = 8
    waves: int | None = None
    """In how many batches episodes are played; of two, one samples while the other waits for the server. None: with
    `model.path` by what took the time of the first evaluation, which may differ from run to run; else 2."""
    connections: int = 64
    max_refills: int = 3
    """With dynamic sampling: how often groups with equal rewards are replaced before one update."""
    max_staleness: int = 0
    """How many of the next batches are played while the learner trains on the current one. 0: none."""
    single_turn: bool = False
    """One reply to each prompt, scored by `/batch/evaluate`, instead of whole episodes."""
    prompts: str | None = None
    """With `single_turn`: JSON lines of `{"messages": [...]}` that end with the user. None: each seed's opening."""


@dataclass(frozen=True)
class AlgorithmSection:
    """An algorithm, and changes to it."""

    name: str = "grpo"
    credit: Credit | None = None
    """`episode` or `to_go`. None: as the algorithm has it."""
    gamma: float | None = None
    """With `to_go`: the discount per turn. None: as the algorithm has it."""
    entropy: float = 0.0
    dimensions: dict[str, float] = field(default_factory=dict)
    """Weights of the dimensions, for algorithms that normalise each dimension separately."""
    overrides: dict[str, Any] = field(default_factory=dict)
    """Fields of the objective to change."""


@dataclass(frozen=True)
class OptimSection:
    """The optimiser."""

    learning_rate: float = 1e-3
    """Default with `model.path`: 1e-6, or 1e-5 if only adapters are trained."""
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
    """What to do if the gradient of a step is not a number."""
    max_mismatch_kl: float = 0.0
    """Upper limit of the KL between sampler and trainer (`mismatch_k3`), in nats per token. 0: no limit."""
    on_mismatch: Literal["stop", "skip"] = "stop"
    """What to do with an update above the limit."""

    def rate(self, step: int, updates: int) -> float:
        """The learning rate of update `step`, counted from 1."""
        if step <= self.warmup_updates:
            return self.learning_rate * step / self.warmup_updates
        done = min(1.0, (step - self.warmup_updates - 1) / max(updates - self.warmup_updates - 1, 1))
        left = {"constant": 1.0, "linear": 1.0 - done, "cosine": 0.5 * (1.0 + math.cos(math.pi * done))}[self.schedule]
        return self.learning_rate * (self.final_share + (1.0 - self.final_share) * left)


@dataclass(frozen=True)
class DataSection:
    """The training file, for algorithms that need no server."""

    file: str | None = None
    """JSON lines: conversations for `sft`, pairs for `dpo`, `dpo_margin` and `ipo`."""
    batch: int = 16
    """Rows per update."""
    micro: int = 4
    """Rows per forward pass."""
    held_out_share: float = 0.1
    skip_bad: bool = False
    """Leave out rows that cannot be used, instead of refusing the file. `--skip-bad` sets it."""


@dataclass(frozen=True)
class EvaluationSection:
    """Evaluation on held-out seeds."""

    every: int = 10
    episodes: int = 64
    samples: int = 2
    """Number of transcripts to keep of the first and the last evaluation."""
    stop_after: int = 0
    """Stop after this many evaluations without an improvement. 0: never."""


@dataclass(frozen=True)
class RunSection:
    """The run as a whole."""

    updates: int = 60
    seed: int = 0
    checkpoint_every: int = 20
    keep: int = 2


@dataclass(frozen=True)
class LoraSection:
    """Low-rank adapters on a frozen model, which then also is the reference. Needs `pip install peft`."""

    rank: int = 0
    """0: no adapters; all weights are trained."""
    alpha: int = 32
    targets: list[str] = field(default_factory=lambda: ["all-linear"])
    """Names of layers, or `all-linear` for every linear layer except the head."""


@dataclass(frozen=True)
class GeneratorSection:
    """The sampler."""

    kind: Literal["hf", "vllm"] = "hf"
    """`hf`: this process samples from its own weights. `vllm`: a server samples and gets the weights of each update."""
    url: str | None = None
    """Address of the vLLM server. A key is read from VLLM_API_KEY."""
    model: str | None = None
    """Name of the model at the vLLM server. None: `model.path`."""
    tolerance: float | None = None
    """How far apart sampler and learner may be in log-probabilities. None: 1e-3 each, or in 16 bits .04 on average."""
    cuda_graphs: bool = True
    """`hf` on a GPU: sample by replaying CUDA graphs, if a test at the start gives the same numbers."""

    @property
    def fixed_shapes(self) -> bool | None:
        """What the sampler is asked for; None: what fits the device."""
        return None if self.cuda_graphs else False


@dataclass(frozen=True)
class ParallelSection:
    """How weights, gradients and the optimiser state are distributed over several processes."""

    kind: Literal["replicate", "fsdp", "deepspeed"] = "replicate"
    """`replicate`: each process holds everything. `fsdp`, `deepspeed`: a shard, and one whole copy to sample from."""
    zero_stage: int = 2
    """With `deepspeed`: 1 shards the optimiser state, 2 also gradients, 3 also weights."""


@dataclass(frozen=True)
class LogSection:
    """Where metrics go besides `metrics.jsonl`."""

    tensorboard: bool = False
    """Write event files into `tensorboard/` of the run. Needs `pip install tensorboard`."""
    wandb: Literal["off", "offline", "online"] = "off"
    """Weights & Biases; `offline` writes into `wandb/` of the run, for `wandb sync`. Needs `pip install wandb`."""
    wandb_project: str = "labs"
