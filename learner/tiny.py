"""A small causal transformer and a word-level tokenizer, made on the spot: nothing is downloaded.

The vocabulary is that of the given texts, so the policy can say what it was shown and little else;
that is enough to learn *what to say when*, which is what the reward is about. Words it never saw
(in a persona's line) become the unknown token.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

START, END, PAD, UNKNOWN = "<|im_start|>", "<|im_end|>", "<|pad|>", "<|unk|>"
# A piece keeps the space before it, so joining pieces gives the text back.
PIECE = re.compile(r" ?[A-Za-z]+(?:'[A-Za-z]+)*| ?[0-9]| ?[^\sA-Za-z0-9]|\s+")
ROLES = ("system", "user", "assistant")
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def build_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """A tokenizer whose words are those of the texts, each with and without a space before it."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = {piece.strip(" ") for text in texts for piece in PIECE.findall(text)} - {""}
    words |= {*ROLES, "\n"}
    pieces = sorted({spelling for word in words for spelling in (word, f" {word}")})
    vocabulary = {piece: number for number, piece in enumerate([PAD, UNKNOWN, START, END, *pieces])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(PIECE.pattern), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        eos_token=END,
        pad_token=PAD,
        unk_token=UNKNOWN,
        additional_special_tokens=[START],
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
    )


def build_model(
    tokenizer: PreTrainedTokenizerFast, *, layers: int, width: int, heads: int, context: int, seed: int
) -> PreTrainedModel:
    """A Llama-shaped model with fresh weights; the same seed gives the same weights."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        # One head of keys and values: reading the cache is what a step of a small model mostly does.
        num_key_value_heads=1,
        max_position_embeddings=context,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return LlamaForCausalLM(config)
