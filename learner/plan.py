"""The plan of a run and the memory it would take, without doing any of it (`--dry-run`).

Memory is an estimate from the configuration of the model: weights, gradients and the two moments of Adam in float32,
the frozen reference, the critic, keys and values of all live conversations, and activations at about 68 bytes per
token, layer and unit of width in float32 (Korthikanti et al., arXiv 2205.05198, has 34 in 16 bits), 4 where they are
made again.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import torch

from learner import checkpoint
from learner.config import Config
from learner.head import CHUNK, KEPT
from learner.models import check_path
from learner.tiny import build_model, build_tokenizer
from learner.warmup import load_script
from trainer_client.connection import resolve_connection

MB = 1e6
_MEMORY = (
    ("/proc/meminfo", r"^MemTotal:\s+(\d+)", 1024.0),
    ("/sys/fs/cgroup/memory.max", r"^(\d+)$", 1.0),
)
"""Where a machine and a container say what they have: file, number in it, its unit."""


def plan(config: Config, folder: Path, url: str | None) -> list[tuple[str, str]]:
    """(name, text) of each line."""
    rollout, objective = config.rollout, config.objective()
    model = empty_model(config)
    trained = "all weights" if not config.lora.rank else f"adapters of rank {config.lora.rank}"
    lines = [
        ("folder", _folder_state(config, folder)),
        (
            "model",
            f"{config.model.path or f'tiny {config.model.family}'}, {_parameters(model):,} parameters, {trained}",
        ),
        ("algorithm", f"{config.algorithm.name}: {objective.advantage}, {objective.ratio} ratio, {objective.gate}"),
    ]
    if objective.kind == "reward":
        where = ", ".join(config.server.scenarios) or f"{config.server.collection}/{config.server.scenario}"
        episodes = rollout.groups * rollout.group_size
        turns = config.server.max_turns
        most = "as many turns as the scenario allows" if turns is None else f"at most {turns} turns"
        each = "replies" if rollout.single_turn else f"episodes of {most}"
        lines += [
            ("server", f"{_health(url)}; {where}"),
            ("each update", f"{rollout.groups} groups of {rollout.group_size}: {episodes} {each}"),
        ]
    else:
        lines.append(("each update", f"{config.data.batch} rows of {config.data.file}"))
    lines.append(("length", f"{config.run.updates} updates, evaluated every {config.evaluation.every}"))
    needed = dict(memory(config, model))
    lines += [("memory", f"{name}: {size / MB:,.0f} MB") for name, size in needed.items() if size]
    there = memory_there(config.model.device)
    known = "" if there is None else f"; there are {there / MB:,.0f} MB"
    lines.append(("memory", f"about {sum(needed.values()) / MB:,.0f} MB in all{known}"))
    if told := shortage(config, model):
        lines.append(("memory", told))
    return lines + [("note", each) for each in remarks(config, int(os.environ.get("WORLD_SIZE", "1")))]


def remarks(config: Config, processes: int) -> list[str]:
    """Remarks on settings that are allowed and probably not meant."""
    found: list[str] = []
    objective = config.objective()
    if objective.needs_critic and objective.critic_warmup >= config.run.updates:
        found.append(
            f"in all {config.run.updates} updates only the critic learns: set algorithm.overrides.critic_warmup (now"
            f" {objective.critic_warmup}) below run.updates, or raise run.updates"
        )
    if processes == 1 and config.parallel.kind != "replicate":
        found.append(
            f"parallel.kind = {config.parallel.kind!r} has no effect: there is only one process. Start several with"
            " torchrun (docs/training.md)"
        )
    return found


def shortage(config: Config, model: Any) -> str | None:
    """The message where the run may need more memory than there is: a process that is killed for it says nothing."""
    needed, there = sum(size for _, size in memory(config, model)), memory_there(config.model.device)
    if there is None or needed <= there:
        return None
    return (
        f"too little: the run may need {needed / MB:,.0f} MB, and there are {there / MB:,.0f} MB; lower"
        " optim.micro_tokens or rollout.groups, or see 'Speed and memory' in docs/training.md"
    )


def empty_model(config: Config) -> Any:
    """The model of a configuration without its weights."""
    from transformers import AutoConfig, AutoModelForCausalLM

    shape = config.model
    check_path(shape.path)
    with torch.device("meta"):
        if shape.path is not None:
            return AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(shape.path))  # type: ignore[no-untyped-call]
        return build_model(
            build_tokenizer(load_script(config.warmup.script).texts(), shape.family),
            layers=shape.layers,
            width=shape.width,
            heads=shape.heads,
            context=shape.context,
            seed=config.run.seed,
            family=shape.family,
        )


def memory(config: Config, model: Any) -> Iterator[tuple[str, float]]:
    """(what, bytes), roughly: a run of 0.5 billion weights with adapters in bf16 took 13.9 GB where this says 13.6."""
    weights = 4.0 * _parameters(model)
    shape, objective = model.config.get_text_config(), config.objective()
    width, layers = shape.hidden_size, shape.num_hidden_layers
    share = _adapter_share(config, model)
    held = (weights + _embeddings(model)) / 2 if config.narrows_frozen else weights
    yield "weights", held + weights * share
    yield "gradients and Adam", 3 * weights * (share or 1.0)
    yield "reference", weights if (objective.needs_reference or config.model.reference) and not share else 0.0
    yield "critic", 4 * weights if objective.needs_critic else 0.0
    inner = getattr(shape, "intermediate_size", None) or 4 * width
    # Of a token and a layer: what the backward pass needs of the attention and of the MLP.
    per_layer = 4 * width if config.model.recompute else 28 * width + 14 * inner
    tokens = config.optim.micro_tokens
    # Logits of a chunk four times: as they are, as shares, without banned tokens, and as a gradient.
    logits = 16.0 * min(CHUNK, tokens) * shape.vocab_size + 4.0 * min(KEPT, tokens * shape.vocab_size)
    yield "activations", per_layer * tokens * layers + logits
    if objective.kind == "reward":
        heads = getattr(shape, "num_key_value_heads", None) or shape.num_attention_heads
        head_width = getattr(shape, "head_dim", None) or width // shape.num_attention_heads
        turns = 1 if config.rollout.single_turn else (config.server.max_turns or 50)
        length = min(2 * turns * config.model.max_tokens, getattr(shape, "max_position_embeddings", 10**9))
        rows = config.rollout.groups * config.rollout.group_size
        yield "keys and values", 8.0 * layers * heads * head_width * length * rows


def _embeddings(model: Any) -> float:
    """Bytes of the embeddings in float32, in which they stay."""
    return 4.0 * float(model.get_input_embeddings().weight.numel())


def _adapter_share(config: Config, model: Any) -> float:
    """Parameters of the adapters, in those of the model; 0 without adapters."""
    if not config.lora.rank:
        return 0.0
    layers = [each for each in model.modules() if isinstance(each, torch.nn.Linear)]
    added = sum(config.lora.rank * (each.in_features + each.out_features) for each in layers)
    return added / _parameters(model)


def memory_there(device: str) -> float | None:
    """Bytes of the device; for the CPU those of the machine or of its container; None if that is not known."""
    if device.startswith("cuda"):
        return float(torch.cuda.get_device_properties(device).total_memory) if torch.cuda.is_available() else None
    found = []
    for path, pattern, unit in _MEMORY:
        with contextlib.suppress(OSError):
            found += [unit * int(size) for size in re.findall(pattern, Path(path).read_text(), re.MULTILINE)]
    return min(found, default=None)


def _parameters(model: Any) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def _folder_state(config: Config, folder: Path) -> str:
    found = checkpoint.newest(folder / "checkpoints")
    if found is None:
        return f"{folder}, new"
    return f"{folder}, continues from update {found.step} of {config.run.updates}"


def _health(url: str | None) -> str:
    connection = resolve_connection(url)
    base = connection.url.removesuffix("/api/v1")
    try:
        with httpx2.Client(timeout=5.0, trust_env=not connection.loopback) as client:
            return (
                f"{base} is healthy" if client.get(f"{base}/healthz").status_code == 200 else f"{base} is not healthy"
            )
    except httpx2.HTTPError:
        return f"{base} does not answer"
