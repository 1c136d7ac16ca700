"""The training file of a run, read for its model: before anything is built, and again when it is learned from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from learner.config import Config
from learner.conversations import ContinuationPair, Segments, read_conversations, read_pairs
from learner.display import Say, silent
from learner.models import context_of, load_tokenizer, stops_at
from learner.tiny import build_tokenizer
from learner.warmup import load_script
from trainer_client.chat.tokens import Renderer, Tokenizer


def read_data(
    config: Config, renderer: Renderer, tokenizer: Tokenizer, context: int | None, say: Say = silent
) -> list[ContinuationPair] | list[Segments]:
    """All rows, as the algorithm takes them. Raises RowError."""
    path, skip_bad = Path(config.data.file or ""), config.data.skip_bad
    read = read_pairs if config.objective().kind == "preference" else read_conversations
    return read(path, renderer, tokenizer, context, skip_bad=skip_bad, say=say)


def check_data(config: Config, say: Say = silent) -> None:
    """Read all rows without the model: they are refused before it is warmed up or loaded."""
    tokenizer: Any
    context: int | None
    if config.model.path is None:
        tokenizer = build_tokenizer(load_script(config.warmup.script).texts(), config.model.family)
        renderer, context = Renderer(tokenizer, options=config.model.template_options), config.model.context
    else:
        tokenizer = load_tokenizer(config.model.path)
        stops = stops_at(config.model.path)
        renderer = Renderer(tokenizer, options=config.model.template_options, stops=stops)
        context = context_of(config.model.path)
    read_data(config, renderer, tokenizer, context, say)
