"""The policies of a run: the one that is trained, as it begins, and the one it is compared with."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import torch

from learner import checkpoint
from learner.config import Config
from learner.display import Now, Say
from learner.lora import BasePolicy
from learner.model import Policy
from learner.models import load, never_sampled, stops_of
from learner.support import Truncation
from learner.tiny import build_model, build_tokenizer
from learner.warmup import load_script, warm_up
from trainer_client.chat.tokens import Renderer


def warmed_up(config: Config, say: Say, now: Now) -> tuple[Any, Any]:
    """A tiny model that has learned a script, and its tokenizer."""
    shape, script = config.model, load_script(config.warmup.script)
    tokenizer = build_tokenizer(script.texts(), shape.family)
    model = build_model(
        tokenizer,
        layers=shape.layers,
        width=shape.width,
        heads=shape.heads,
        context=shape.context,
        seed=config.run.seed,
        family=shape.family,
    )
    count = sum(parameter.numel() for parameter in model.parameters())
    say(f"warming up a model of {count:,} parameters and {len(tokenizer):,} tokens on scripted dialogues")
    policy = policy_of(config, model, tokenizer, renderer_of(config, model, tokenizer))
    losses = warm_up(policy, script, tokenizer, config.warmup.settings(), seed=config.run.seed, now=now)
    say(f"warm-up: loss {losses[0]:.2f} -> {losses[-1]:.2f} in {len(losses)} steps")
    return model, tokenizer


def policy_of(config: Config, model: Any, tokenizer: Any, renderer: Renderer) -> Policy:
    """The distribution that a model acts by in a run."""
    model.eval()  # no dropout: sampler and learner must see one distribution
    return Policy(
        model,
        end_id=renderer.end_id,
        banned=never_sampled(model, tokenizer),
        temperature=config.model.temperature,
        truncation=Truncation(config.model.top_p, config.model.top_k),
        autocast=torch.bfloat16 if config.model.precision == "bfloat16" else None,
    )


def renderer_of(config: Config, model: Any, tokenizer: Any) -> Renderer:
    """The renderer of turns for a model."""
    return Renderer(tokenizer, options=config.model.template_options, stops=stops_of(model))


def reference_of(config: Config, folder: Path, policy: Policy, tokenizer: Any, renderer: Renderer) -> Policy:
    """The policy the run began with, frozen: what is below the adapters, its first checkpoint, or this one."""
    if config.lora.rank:
        return BasePolicy(policy)
    first = checkpoint.at(folder / "checkpoints", 0)
    model = policy.model
    frozen = copy.deepcopy(model) if first is None else load(str(first.model_path))[0].to(config.model.device)
    return policy_of(config, frozen.requires_grad_(requires_grad=False), tokenizer, renderer)
