"""A small BERT with random weights in a folder: a real encoder that trains in seconds."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import BertConfig, BertModel, BertTokenizerFast

from tests.reward_models.talks import KIND, PLAIN

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *KIND, *PLAIN, "hello", "hi", "well", ".", "?")


def make_tiny_encoder(folder: Path) -> Path:
    """The folder, as `--encoder` takes it."""
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    BertTokenizerFast(vocab=str(folder / "vocab.txt"), do_lower_case=True).save_pretrained(folder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = BertConfig(
            vocab_size=len(WORDS),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=64,
        )
        BertModel(config).save_pretrained(folder)
    return folder
