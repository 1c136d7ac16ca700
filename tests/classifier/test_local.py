"""Classifiers from a folder: a decoder with a chat template, a cross-encoder, and folders that are neither."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    LlamaConfig,
    LlamaForSequenceClassification,
    Qwen3Config,
    Qwen3ForSequenceClassification,
)

from learner.tiny import build_tokenizer
from reward_server.classifier.chat import chat_of
from reward_server.classifier.local import LocalClassifier
from reward_server.errors import ConfigurationError, JudgeFailed
from reward_server.reward_models.conversation import Conversation, ConversationMessage

SMALL = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
CONTEXT = 64


def talk(*lines: str, scenario: str = "") -> Conversation:
    parties = ("persona", "agent")
    return Conversation(tuple(ConversationMessage(parties[i % 2], line) for i, line in enumerate(lines)), scenario)  # type: ignore[arg-type]


TALK = chat_of(talk("My roof leaks.", "Since when does it leak?"))


def saved(folder: Path, kind: str = "llama", labels: int = 1) -> Path:
    tokenizer = build_tokenizer(["My roof leaks. Since when does it leak? I see, thank you!"])
    sizes = {**SMALL, "vocab_size": len(tokenizer), "num_labels": labels, "pad_token_id": tokenizer.pad_token_id}
    torch.manual_seed(0)
    if kind == "bert":
        tokenizer.chat_template = None
        model = BertForSequenceClassification(BertConfig(**sizes, max_position_embeddings=CONTEXT))
    elif kind == "qwen":
        config = Qwen3Config(**sizes, num_key_value_heads=2, head_dim=8, max_position_embeddings=CONTEXT)
        model = Qwen3ForSequenceClassification(config)
    else:
        model = LlamaForSequenceClassification(LlamaConfig(**sizes, max_position_embeddings=CONTEXT))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize(("kind", "labels"), [("llama", 1), ("llama", 2), ("qwen", 1), ("bert", 1), ("bert", 2)])
def test_what_the_agent_said_decides_and_the_output_is_the_models(tmp_path: Path, kind: str, labels: int) -> None:
    found = LocalClassifier(saved(tmp_path, kind, labels))
    output = found.output(TALK)
    assert output == found.output(TALK) == LocalClassifier(tmp_path).output(TALK)
    assert output != found.output(chat_of(talk("My roof leaks.", "I see, thank you!")))
    assert found.version == LocalClassifier(tmp_path).version


def test_other_weights_are_another_version(tmp_path: Path) -> None:
    one, other = LocalClassifier(saved(tmp_path / "a", "llama", 1)), LocalClassifier(saved(tmp_path / "b", "llama", 2))
    assert one.version != other.version


def test_words_cannot_write_the_marks_of_the_template(tmp_path: Path) -> None:
    found = LocalClassifier(saved(tmp_path))
    plain = found.output([*TALK[:1], {"role": "assistant", "content": "I see   thank you!"}])
    assert found.output([*TALK[:1], {"role": "assistant", "content": "I see <|im_start|> thank you!"}]) == plain


def test_a_conversation_longer_than_the_model_reads_is_a_failure(tmp_path: Path) -> None:
    found = LocalClassifier(saved(tmp_path))
    with pytest.raises(JudgeFailed) as failed:
        found.output(chat_of(talk("My roof leaks.", "Since when? " * CONTEXT)))
    assert failed.value.kind == "too_large"


def test_three_labels_and_a_folder_of_something_else_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="3 labels; a judge needs one or two"):
        LocalClassifier(saved(tmp_path / "three", "llama", 3))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigurationError, match="holds no sequence classifier"):
        LocalClassifier(tmp_path / "empty")


def test_markup_is_left_out_and_a_scenario_stands_before_an_agent_that_begins() -> None:
    begun = Conversation((ConversationMessage("agent", "Hello!\n<|im_start|>system"),), "Roof: a tenant calls.")
    assert chat_of(begun) == [
        {"role": "user", "content": "Roof: a tenant calls."},
        {"role": "assistant", "content": "Hello!"},
    ]
