"""Loads an encoder by name; imports the adapter it needs when it is called, and so torch only then."""

from __future__ import annotations

from pathlib import Path

from reward_server.encoders.encoder import MODEL, PACKAGED, Precision, TextEncoder

__all__ = ["load_encoder", "load_fast_encoder"]


def load_encoder(name: str = PACKAGED) -> TextEncoder:
    """Load the packaged weights, or a folder or hub name through sentence-transformers."""
    if name in {"", PACKAGED, MODEL}:
        from reward_server.encoders.minilm import load_packaged

        return load_packaged()
    from reward_server.encoders.sentence_transformer import load_sentence_transformer

    return load_sentence_transformer(Path(name).expanduser().as_posix() if name.startswith("~") else name)


def load_fast_encoder(name: str = PACKAGED, precision: Precision = "auto") -> TextEncoder:
    """The encoder of learned scoring: whole conversations, bf16 where that is faster and exact per text.

    Another model than the packaged one is computed as it is.
    """
    if name in {"", PACKAGED, MODEL}:
        from reward_server.encoders.fast import load_packaged_fast

        return load_packaged_fast(precision)
    return load_encoder(name)
