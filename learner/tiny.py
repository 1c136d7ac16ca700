"""A small causal transformer and a word-level tokenizer, made on the spot: nothing is downloaded.

The vocabulary is that of the given texts, so the policy can say what it was shown and little else;
that is enough to learn *what to say when*, which is what the reward is about. Words it never saw
(in a persona's line) become the unknown token.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

PAD, UNKNOWN = "<|pad|>", "<|unk|>"
Family = Literal["llama", "qwen", "gemma"]
"""Whose shape a model has: the plain transformer, Qwen 3's (norms of queries and keys), or Gemma 3's (sliding windows,
scaled embeddings, norms on both sides), each with the turns of its chat template."""
# A piece keeps the space before it, so joining pieces gives the text back.
PIECE = re.compile(r" ?[A-Za-z]+(?:'[A-Za-z]+)*| ?[0-9]| ?[^\sA-Za-z0-9]|\s+")
_CHATML = (
    "{% for message in messages %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_TURNS = (
    "{% for message in messages %}"
    "{% set role = 'model' if message['role'] == 'assistant' else message['role'] %}"
    "{% if role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "<start_of_turn>{{ role }}\n{{ message['content'] | trim }}<end_of_turn>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)


@dataclass(frozen=True)
class _Turns:
    """The template with which a family writes turns."""

    start: str = "<|im_start|>"
    end: str = "<|im_end|>"
    roles: tuple[str, ...] = ("system", "user", "assistant")
    template: str = _CHATML


_FAMILIES: dict[Family, _Turns] = {
    "llama": _Turns(),
    "qwen": _Turns(),
    "gemma": _Turns("<start_of_turn>", "<end_of_turn>", ("user", "model"), _TURNS),
}


def build_tokenizer(texts: Iterable[str], family: Family = "llama") -> PreTrainedTokenizerFast:
    """A tokenizer whose words are those of the texts, each with and without a space before it."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    turns = _FAMILIES[family]
    words = {piece.strip(" ") for text in texts for piece in PIECE.findall(text)} - {""}
    words |= {*turns.roles, "\n"}
    pieces = sorted({spelling for word in words for spelling in (word, f" {word}")})
    vocabulary = {piece: number for number, piece in enumerate([PAD, UNKNOWN, turns.start, turns.end, *pieces])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(PIECE.pattern), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        eos_token=turns.end,
        pad_token=PAD,
        unk_token=UNKNOWN,
        additional_special_tokens=[turns.start],
        chat_template=turns.template,
        clean_up_tokenization_spaces=False,
    )


def build_model(
    tokenizer: PreTrainedTokenizerFast,
    *,
    layers: int,
    width: int,
    heads: int,
    context: int,
    seed: int,
    family: Family = "llama",
) -> PreTrainedModel:
    """A model with fresh weights; the same seed gives the same weights."""
    import torch
    import transformers

    shape: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": width,
        "intermediate_size": 3 * width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        # One head of keys and values: reading the cache is what a step of a small model mostly does.
        "num_key_value_heads": 1,
        "max_position_embeddings": context,
        "tie_word_embeddings": True,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": None,
    }
    makers: dict[Family, tuple[Any, Any, dict[str, Any]]] = {
        "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM, {}),
        "qwen": (transformers.Qwen3Config, transformers.Qwen3ForCausalLM, {"head_dim": width // heads}),
        "gemma": (
            transformers.Gemma3TextConfig,
            transformers.Gemma3ForCausalLM,
            {
                "head_dim": width // heads,
                "query_pre_attn_scalar": width // heads,
                "sliding_window": 64,
                "layer_types": ["sliding_attention"] * (layers - 1) + ["full_attention"],
            },
        ),
    }
    configuration, model, more = makers[family]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        made: PreTrainedModel = model(configuration(**shape, **more))
    return made
