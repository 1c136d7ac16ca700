"""The reader's text encoder: the packaged one with its upper layers trained for reading.

The artefact holds the trained layers alone (fp16); the lower ones, the embeddings and the tokenizer come from the
package. So the file stays small, and a damaged or swapped package is noticed by its own hash.
"""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import Literal

import torch
from safetensors.torch import load
from torch import Tensor

from personas.reading.heads import ARTEFACT
from reward_server.encoders.int8 import INT8
from reward_server.encoders.minilm import LAYERS, EncoderCheckpoint, MiniLmEncoder, packaged_folder, read_checkpoint
from reward_server.errors import EncoderUnavailable
from reward_server.logs.logger import get_logger

ReaderPrecision = Literal["fp32", "int8"]
"""Numbers of the reader: int8 is about twice as fast, but depends on the kind of processor (decision 15)."""
PREFIX = "encoder.layer."
log = get_logger(__name__)
MAX_TOKENS = 160
"""A sentence of 400 characters, and the end of a line before it."""


def artefact_bytes(name: str = ARTEFACT) -> bytes:
    """The packaged artefact of the reader, or of its fluency model.

    Raises:
        EncoderUnavailable: it is missing.
    """
    try:
        return (files("personas.reading") / "model" / name).read_bytes()
    except OSError as error:
        raise EncoderUnavailable(f"the reader's file {name} is missing: reinstall Labs") from error


def tuned(checkpoint: EncoderCheckpoint, raw: bytes) -> EncoderCheckpoint:
    """The packaged checkpoint with the trained layers of an artefact in the place of its own."""
    layers = {name: tensor.float() for name, tensor in load(raw).items() if name.startswith(PREFIX)}
    missing = set(layers) - set(checkpoint.weights)
    if missing:
        raise EncoderUnavailable("the reader's model does not fit the text encoder: run `labs reader train`")
    digest = hashlib.sha256(raw).hexdigest()[:12]
    return EncoderCheckpoint(
        {**checkpoint.weights, **layers}, checkpoint.tokenizer, f"{checkpoint.version}/reader-{digest}"
    )


def load_reader_encoder(raw: bytes, layers: int = LAYERS, precision: ReaderPrecision = "fp32") -> MiniLmEncoder:
    """The encoder of an artefact: all layers for the reader, fewer for its fluency model."""
    weights, tokenizer, version = tuned(read_checkpoint(packaged_folder()), raw)
    if precision == "int8":
        encoder = MiniLmEncoder(weights, tokenizer, f"{version}/int8", MAX_TOKENS, layers=layers, ways=INT8)
        if encoder.method != INT8[0].method:
            log.warning("int8_is_not_native", advice="it is no faster here: leave LABS_READER_PRECISION out")
        return encoder
    return MiniLmEncoder(weights, tokenizer, version, MAX_TOKENS, layers=layers)


def layers_of(weights: dict[str, Tensor], lowest: int) -> dict[str, Tensor]:
    """The layers from `lowest` on, as an artefact holds them."""
    kept = tuple(f"{PREFIX}{number}." for number in range(lowest, LAYERS))
    return {name: tensor.to(torch.float16) for name, tensor in weights.items() if name.startswith(kept)}
