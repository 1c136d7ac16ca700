"""The sections of a run's configuration: every key, its type, its default and what it means.

Where the type includes None, the file and `--set` unset a key with `"none"`.
"""

from __future__ import annotations

import math
import types
import typing
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from learner.algorithms import Credit
from learner.tiny import Family

if typing.TYPE_CHECKING:
    from learner.warmup import WarmupSettings


WantedSplit = Literal["auto", "train", "eval"] | None
UNSET = "none"
"""Written for a key that may have no value: TOML has no null, and a preset may have set it."""


def number(
    default: Any,
    *,
    gt: float | None = None,
    ge: float | None = None,
    le: float | None = None,
    any_number: bool = False,
    hint: str = "",
) -> Any:
    """A number of a section with what it may be: one outside would end a run much later, or train nothing, or the
    opposite of what is asked for. `hint` is added to what is said of one that is outside."""
    more = {"hint": hint, "any": any_number}
    return Field(default, gt=gt, ge=ge, le=le, json_schema_extra=more)  # type: ignore[arg-type]


class Section(BaseModel):
    """A section: every key of the right type, and no other key."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _unset(cls, values: Any) -> Any:
        """None for each `"none"`, where the key may have no value and the word is not one."""
        if not isinstance(values, dict):
            return values
        return {
            name: None if value == UNSET and name in cls.model_fields and can_be_unset(cls, name) else value
            for name, value in values.items()
        }


def can_be_unset(kind: type[BaseModel], name: str) -> bool:
    """True if `"none"` unsets this key."""
    allowed = typing.get_args(kind.model_fields[name].annotation)
    words = [word for option in allowed for word in typing.get_args(option)]
    return types.NoneType in allowed and UNSET not in words


class ServerSection(Section):
    """The server on which episodes are played."""

    url: str | None = None
    """None: LABS_URL, else the local server."""
    collection: str = "clinical-intake"
    scenario: str = "tired-and-dizzy"
    scenarios: list[str] = Field(default_factory=list)
    """Several scenarios instead of the one: each `collection/scenario`, or a collection for all its scenarios."""
    held_out: list[str] = Field(default_factory=list)
    """Scenarios for evaluation only. Empty: evaluate on held-out seeds of the training scenarios."""
    split: WantedSplit = "auto"
    """Variants to train on: `train`, `eval`, or `"none"` for all. `auto`: `train` where a scenario has that split."""
    held_out_split: WantedSplit = "auto"
    """Variants to evaluate on. `auto`: `eval` where a scenario has that split."""
    max_turns: int | None = number(12, gt=0)
    """Most turns of an episode. `"none"`: as many as the scenario allows."""
    system: str = "auto"
    """System prompt of the policy: `card` for the scenario's public description, `none`, or a text. `auto`: the card
    if `model.path` is set, none for a tiny model."""
    reward_config: dict[str, Any] = Field(default_factory=dict)
    """Sent with every episode, such as `{composite = {combine = "min", parts = [...]}}`."""
    patience_s: float = number(600.0, ge=0)
    """How long to wait for a server that does not answer before episodes count as failed."""


class ModelSection(Section):
    """The policy."""

    path: str | None = None
    """A transformers folder or hub name. None: a tiny model, built and warmed up at the start of the run."""
    family: Family = "llama"
    """Architecture of a tiny model: `llama`, `qwen` or `gemma`."""
    layers: int = number(2, gt=0)
    width: int = number(96, gt=0)
    heads: int = number(4, gt=0)
    context: int = number(2048, gt=0)
    temperature: float = number(1.0, gt=0)
    top_p: float = number(1.0, gt=0, le=1, hint="; 1 leaves nothing out")
    """Sample from the likeliest tokens that have this probability together. 1: from all."""
    top_k: int = number(0, ge=0, hint="; 0 leaves nothing out")
    """Sample from so many of the likeliest tokens. 0: from all."""
    max_tokens: int = number(32, gt=0)
    """Maximum length of a turn, in tokens. Default with `path`: 256."""
    device: str = "cpu"
    threads: int = number(1, gt=0)
    """Threads of torch on the CPU. For a tiny model, more than one is slower."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Precision of matrix products, in sampler and update; weights stay in float32."""
    recompute: bool = False
    """Compute activations again in the backward pass: less memory, about a third more time."""
    compile: bool = False
    """Compile the layers with torch for the update (fused kernels). Takes up to a minute at the start of a run."""
    template_options: dict[str, Any] = Field(default_factory=dict)
    """Passed to the chat template, such as `{enable_thinking = false}`."""
    reference: bool = True
    """Keep a frozen copy of the initial weights, for KL and fluency. Algorithms that need it keep it anyway."""


class WarmupSection(Section):
    """Scripted dialogues for a tiny model."""

    script: str = "tired-and-dizzy"
    steps: int = number(200, gt=0)
    batch: int = number(8, gt=0)
    turns: int = number(12, gt=0)
    learning_rate: float = number(4e-3, gt=0)

    def settings(self) -> WarmupSettings:
        """The same, for the warm-up."""
        from learner.warmup import WarmupSettings

        return WarmupSettings(self.steps, self.batch, self.turns, self.learning_rate)


class RolloutSection(Section):
    """The episodes of one update."""

    groups: int = number(8, gt=0)
    group_size: int = number(8, ge=2, hint=": a group of one has nothing to compare with")
    waves: int | None = number(None, gt=0)
    """In how many batches episodes are played; of two, one samples while the other waits for the server. None: with
    `model.path` by what took the time of the first evaluation, which may differ from run to run; else 2."""
    connections: int = number(64, gt=0)
    max_refills: int = number(3, ge=0)
    """With dynamic sampling: how often groups with equal rewards are replaced before one update."""
    curriculum: Literal["off", "spread"] = "off"
    """`spread`: half of the groups are past ones again, the more often the more their rewards differed."""
    max_staleness: int = number(0, ge=0)
    """How many of the next batches are played while the learner trains on the current one. 0: none."""
    single_turn: bool = False
    """One reply to each prompt, scored by `/batch/evaluate`, instead of whole episodes."""
    prompts: str | None = None
    """With `single_turn`: JSON lines of `{"messages": [...]}` that end with the user. None: each seed's opening."""


class AlgorithmSection(Section):
    """An algorithm, and changes to it."""

    name: str = "grpo"
    credit: Credit | None = None
    """`episode` or `to_go`. None: as the algorithm has it."""
    gamma: float | None = number(None, ge=0, le=1)
    """With `to_go`: the discount per turn. None: as the algorithm has it."""
    entropy: float = number(0.0, any_number=True)
    dimensions: dict[str, float] = Field(default_factory=dict)
    """Weights of the dimensions, for algorithms that normalise each dimension separately."""
    overrides: dict[str, Any] = Field(default_factory=dict)
    """Fields of the objective to change."""


class OptimSection(Section):
    """The optimiser."""

    learning_rate: float = number(1e-3, gt=0)
    """Default with `model.path`: 1e-6, or 1e-5 if only adapters are trained."""
    weight_decay: float = number(0.0, ge=0)
    clip_norm: float = number(1.0, gt=0, hint="; a large number never clips")
    minibatches: int = number(1, gt=0)
    micro_tokens: int = number(4_096, gt=0)
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """How the learning rate falls from its full value to `final_share` of it over the updates of the run."""
    warmup_updates: int = number(0, ge=0)
    """Updates over which the learning rate rises to its full value."""
    final_share: float = number(0.0, ge=0, le=1)
    non_finite: Literal["stop", "skip"] = "stop"
    """What to do if the gradient of a step is not a number."""
    max_mismatch_kl: float = number(0.0, ge=0, hint="; 0 sets no limit")
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


class DataSection(Section):
    """The training file, for algorithms that need no server."""

    file: str | None = None
    """JSON lines: conversations for `sft`, pairs for `dpo`, `dpo_margin` and `ipo`."""
    batch: int = number(16, gt=0)
    """Rows per update."""
    micro: int = number(4, gt=0)
    """Rows per forward pass."""
    held_out_share: float = number(0.1, ge=0, le=1)
    skip_bad: bool = False
    """Leave out rows that cannot be used, instead of refusing the file. `--skip-bad` sets it."""


class EvaluationSection(Section):
    """Evaluation on held-out seeds."""

    every: int = number(10, gt=0)
    episodes: int = number(64, gt=0)
    samples: int = number(2, ge=0)
    """Number of transcripts to keep of the first and the last evaluation."""
    stop_after: int = number(0, ge=0, hint="; 0 never stops")
    """Stop after this many evaluations without an improvement. 0: never."""


class RunSection(Section):
    """The run as a whole."""

    updates: int = number(60, gt=0)
    seed: int = number(0, ge=0)
    checkpoint_every: int = number(20, gt=0)
    keep: int = number(2, gt=0)


class LoraSection(Section):
    """Low-rank adapters on a frozen model, which then also is the reference. Needs `pip install peft`."""

    rank: int = number(0, ge=0, hint="; 0 trains all weights")
    """0: no adapters; all weights are trained."""
    alpha: int = number(32, gt=0)
    targets: list[str] = Field(default_factory=lambda: ["all-linear"])
    """Names of layers, or `all-linear` for every linear layer except the head."""


class GeneratorSection(Section):
    """The sampler."""

    kind: Literal["hf", "vllm", "vllm_colocated"] = "hf"
    """`hf`: this process samples from its own weights. `vllm`: a server samples and gets the weights of each update.
    `vllm_colocated`: the same with an engine in this process, which sleeps during the update."""
    url: str | None = None
    """Address of the vLLM server. A key is read from VLLM_API_KEY."""
    model: str | None = None
    """Name of the model at the vLLM server. None: `model.path`."""
    memory_share: float = number(0.3, gt=0, le=1)
    """`vllm_colocated`: the engine's share of the GPU's memory while it is awake."""
    sleep: bool = True
    """`vllm_colocated` on a GPU: the engine gives its memory to the learner during the update."""
    tolerance: float | None = number(None, gt=0)
    """How far apart sampler and learner may be in log-probabilities. None: 1e-3 each, or in 16 bits .04 on average."""
    cuda_graphs: bool = True
    """`hf` on a GPU: sample by replaying CUDA graphs, if a test at the start gives the same numbers."""

    @property
    def fixed_shapes(self) -> bool | None:
        """The setting for the sampler; None: what fits the device."""
        return None if self.cuda_graphs else False


class ParallelSection(Section):
    """The distribution of weights, gradients and the optimiser state over several processes."""

    kind: Literal["replicate", "fsdp", "deepspeed"] = "replicate"
    """`replicate`: each process holds everything. `fsdp`, `deepspeed`: a shard, and one whole copy to sample from."""
    zero_stage: int = number(2, ge=1, le=3)
    """With `deepspeed`: 1 shards the optimiser state, 2 also gradients, 3 also weights."""


class LogSection(Section):
    """The places that metrics go to besides `metrics.jsonl`."""

    tensorboard: bool = False
    """Write event files into `tensorboard/` of the run. Needs `pip install tensorboard`."""
    wandb: Literal["off", "offline", "online"] = "off"
    """Weights & Biases; `offline` writes into `wandb/` of the run, for `wandb sync`. Needs `pip install wandb`."""
    wandb_project: str = "labs"
