"""A classifier in this process: any `AutoModelForSequenceClassification` with one or two labels, from a folder.

One chat at a time and without padding, so that an output depends on its own chat alone. It runs on the GPU where there
is one, in the number format of its files.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from threading import Lock
from typing import Any

from reward_server.classifier.chat import Chat, single
from reward_server.errors import ConfigurationError, JudgeFailed

HASHED = {".safetensors", ".json", ".jinja"}


class LocalClassifier:
    """A loaded model; one call at a time."""

    def __init__(self, folder: Path) -> None:
        """Raises: ConfigurationError: it is no such model, or cannot be loaded."""
        try:
            import torch
            from transformers import AutoModelForSequenceClassification, AutoTokenizer
        except ImportError:
            raise ConfigurationError(
                "LABS_CLASSIFIER names a model folder: install the extra labs-reward-server[encoders]"
            ) from None
        try:
            self._tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            model = AutoModelForSequenceClassification.from_pretrained(folder, local_files_only=True, dtype="auto")
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise ConfigurationError(
                f"LABS_CLASSIFIER: {folder} holds no sequence classifier with its tokenizer ({type(error).__name__})"
            ) from None
        if model.config.num_labels not in {1, 2}:
            raise ConfigurationError(
                f"LABS_CLASSIFIER: {folder} has {model.config.num_labels} labels; a judge needs one or two"
            )
        self._torch = torch
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._model = model.to(self._device).eval()
        self._longest = _longest(model.config, self._tokenizer)
        self._specials = sorted(self._tokenizer.all_special_tokens, key=len, reverse=True)
        self._lock = Lock()
        self._version = f"classifier/local/{_digest(folder)}"

    @property
    def version(self) -> str:
        """Of the model's files."""
        return self._version

    def output(self, chat: Chat) -> float:
        """A number on the model's own scale.

        Raises:
            JudgeFailed: the conversation is longer than the model reads, or the outputs are no numbers.
        """
        ids = self._ids(chat)
        if len(ids) > self._longest:
            raise JudgeFailed(kind="too_large")
        with self._lock, self._torch.inference_mode():
            row = self._torch.tensor([ids], device=self._device)
            logits = self._model(input_ids=row, attention_mask=self._torch.ones_like(row)).logits[0]
        return single(logits.float().tolist())

    def _ids(self, chat: Chat) -> list[int]:
        messages = [{"role": said["role"], "content": self._plain(said["content"])} for said in chat]
        if self._tokenizer.chat_template:
            text = self._tokenizer.apply_chat_template(messages, tokenize=False)
            return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])
        # A cross-encoder: what was said before, and the last message.
        before = "\n".join(f"{said['role']}: {said['content']}" for said in messages[:-1])
        return list(self._tokenizer(before, messages[-1]["content"])["input_ids"])

    def _plain(self, text: str) -> str:
        """Without the tokens that only a template may write."""
        for special in self._specials:
            text = text.replace(special, " ")
        return text


def _longest(config: Any, tokenizer: Any) -> int:
    """So many tokens the model reads."""
    positions = getattr(config, "max_position_embeddings", None) or tokenizer.model_max_length
    return int(min(positions, tokenizer.model_max_length))


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.suffix in HASHED:
            digest.update(path.name.encode())
            with path.open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
    return digest.hexdigest()[:12]
