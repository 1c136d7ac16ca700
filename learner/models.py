"""Loads and stores weights: a folder of transformers, or adapters on one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from learner.config import Config, ConfigError
from learner.lora import LoraSettings, loaded_adapters, with_adapters
from learner.sections import LoraSection
from trainer_client.chat.tokens import special_tokens

_HUB_NAME = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
ADAPTER_FILE = "adapter_config.json"
BASE_FOLDER = "base"
"""In a run with adapters on a tiny model: the model they are on, which nobody else keeps."""


def check_path(path: str | None) -> None:
    """Refuse what cannot be the place of a model."""
    if path is not None and not Path(path).is_dir() and _HUB_NAME.fullmatch(path) is None:
        raise ConfigError(f"model.path: {path} is neither a folder nor the name of a model on the hub (owner/name)")


def check_device(name: str, setting: str = "model.device") -> None:
    """Refuse what torch would only fail on, in words that do not name the setting."""
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"{setting}: {name!r} cannot be used on this machine: {reason}") from None


def load(path: str) -> tuple[Any, Any]:
    """Model and tokenizer of a folder or a name of the hub."""
    from transformers import AutoModelForCausalLM, AutoTokenizer, logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    return AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32), AutoTokenizer.from_pretrained(path)


def write(model: Any, tokenizer: Any, folder: Path) -> None:
    """A folder that `load` reads."""
    tell_deepspeed()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def tell_deepspeed() -> None:
    """Tell DeepSpeed where there is only a CPU; otherwise it prints a warning when it is imported.

    Where it is installed, transformers imports it to write a model, whether it is used or not.
    """
    if not torch.accelerator.is_available():
        os.environ.setdefault("DS_ACCELERATOR", "cpu")


def load_given(path: str) -> tuple[Any, Any]:
    """The model of the configuration and its tokenizer."""
    with _named(path):
        model, tokenizer = load(path)
    _check_tokenizer(tokenizer, path)
    return model, tokenizer


def load_tokenizer(path: str) -> Any:
    """The tokenizer of the configuration's model, without the model."""
    from transformers import AutoTokenizer

    check_path(path)
    with _named(path):
        tokenizer = AutoTokenizer.from_pretrained(path)
    _check_tokenizer(tokenizer, path)
    return tokenizer


def context_of(path: str) -> int | None:
    """The number of tokens a model has positions for; None: it does not say."""
    from transformers import AutoConfig

    with _named(path):
        found: int | None = getattr(AutoConfig.from_pretrained(path), "max_position_embeddings", None)
    return found


def stops_at(path: str) -> list[int]:
    """The tokens that a model was made to stop at, without loading it."""
    from transformers import GenerationConfig

    try:
        return _stops(GenerationConfig.from_pretrained(path))
    except OSError:  # a model need not have one
        return []


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Name the setting where transformers cannot load a model; it does not itself, nor are retries of the hub for
    the user."""
    from huggingface_hub.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    try:
        yield
    except (OSError, ValueError, LookupError, RuntimeError, SafetensorError) as error:
        what = (
            "the folder contains no model that can be loaded"
            if Path(path).is_dir()
            else "neither a folder nor a model on the hub"
        )
        raise ConfigError(f"model.path: {path}: {what}: {' '.join(str(error).split())}") from None
    finally:
        logging.set_verbosity(before)


def _check_tokenizer(tokenizer: Any, path: str) -> None:
    if set(tokenizer.get_vocab()) <= set(tokenizer.get_added_vocab()):  # what transformers makes where there is none
        raise ConfigError(f"model.path: {path}: there is no tokenizer; it belongs beside the weights (tokenizer.json)")


def load_checkpoint(path: Path, run: Path, base: str | None) -> tuple[Any, Any]:
    """Model and tokenizer of a checkpoint, its adapters on the model they belong to."""
    if not (path / ADAPTER_FILE).exists():
        return load(str(path))
    from transformers import AutoTokenizer

    below = load(base if base is not None else str(run / BASE_FOLDER))[0]
    return loaded_adapters(below, path), AutoTokenizer.from_pretrained(path)


def with_lora(model: Any, tokenizer: Any, config: Config, folder: Path) -> Any:
    """The model with fresh adapters, if the configuration wants them."""
    if not config.lora.rank:
        return model
    if config.model.path is None:
        write(model, tokenizer, folder / BASE_FOLDER)
    with torch.random.fork_rng():
        torch.manual_seed(config.run.seed)
        return with_adapters(model, lora_settings(config.lora))


def lora_settings(section: LoraSection) -> LoraSettings:
    """As the adapters take them."""
    return LoraSettings(section.rank, section.alpha, tuple(section.targets))


def merged(model: Any) -> Any:
    """A plain model: adapters, if there are any, are added to the weights they are on."""
    return model.merge_and_unload() if hasattr(model, "merge_and_unload") else model


def never_sampled(model: Any, tokenizer: Any) -> list[int]:
    """Ids of the head that a policy must not say: control tokens, and rows that no token has.

    A tokenizer may have tokens that the head has no row for, such as a place for images.
    """
    rows = model.get_output_embeddings().weight.shape[0]
    control = {number for number in special_tokens(tokenizer).values() if number < rows}
    return sorted(control.union(ids_without_token(model, tokenizer)))


def ids_without_token(model: Any, tokenizer: Any) -> list[int]:
    """Rows of the head that no token of the tokenizer has: padding of the vocabulary."""
    known = set(tokenizer.get_vocab().values())
    rows = model.get_output_embeddings().weight.shape[0]
    return [number for number in range(rows) if number not in known]


def stops_of(model: Any) -> list[int]:
    """The tokens that the model was made to stop at, by its generation_config."""
    return _stops(getattr(model, "generation_config", None))


def _stops(settings: Any) -> list[int]:
    found = getattr(settings, "eos_token_id", None)
    return [] if found is None else [found] if isinstance(found, int) else list(found)
