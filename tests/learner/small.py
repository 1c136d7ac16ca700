"""A policy small enough for tests, with a script of a dozen lines."""

from __future__ import annotations

from typing import Any

import torch
from transformers import Qwen3Config

from learner.generate.hf import HfGenerator
from learner.model import Policy
from learner.tiny import build_model, build_tokenizer
from learner.types import Segment, Trajectory
from learner.warmup import Script, ScriptedExchange, Style
from trainer_client.chat.tokens import Renderer

torch.set_num_threads(1)

SCRIPT = Script(
    collection="c",
    scenario="s",
    openings=("hello, I am number 3", "hello, I am number 4"),
    styles=(Style("turning", 1.0, early={"good": 1.0}, late={"chatter": 1.0, "rude": 1.0}),),
    exchanges=(
        ScriptedExchange("good", "tell me more.", ("yes, that is so 1", "goodbye")),
        ScriptedExchange("good", "please tell me why.", ("yes, that is so 2",)),
        ScriptedExchange("chatter", "the sky is blue.", ("yes, that is so 3",)),
        ScriptedExchange("rude", "go away!", ("yes, that is so 5",)),
    ),
)


def tokenizer() -> Any:
    return build_tokenizer(SCRIPT.texts())


def policy(words: Any, *, seed: int = 0, temperature: float = 1.0, spread: float = 1.0) -> Policy:
    """Fresh weights; `spread` scales them, so that the distribution is not almost flat."""
    model = build_model(words, layers=2, width=32, heads=4, context=512, seed=seed).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(spread)
    banned = [words.convert_tokens_to_ids(token) for token in words.all_special_tokens]
    return Policy(model, end_id=words.eos_token_id, banned=banned, temperature=temperature)


def qwen3_config(size: int, **more: Any) -> Qwen3Config:
    """The shape of a Qwen 3 small enough for tests, with a vocabulary of this size."""
    return Qwen3Config(
        vocab_size=size,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=256,
        **more,
    )


def generator(of: Policy, max_tokens: int = 6) -> HfGenerator:
    return HfGenerator(of, max_tokens=max_tokens)


def trajectory(words: Any, turns: list[tuple[str, str]], rewards: list[float], seed: int = 0) -> Trajectory:
    """(persona, policy) turns as a rollout would have recorded them, log-probabilities made up."""
    renderer = Renderer(words)
    segments: list[Segment] = []
    for number, (persona, said) in enumerate(turns):
        given = renderer.suffix(persona, ended=True) if number else renderer.opening(persona)
        ids = (*words.encode(said, add_special_tokens=False), renderer.end_id)
        segments += [Segment(tuple(given)), Segment(ids, (-1.0,) * len(ids))]
    return Trajectory(tuple(segments), tuple(rewards), seed)
