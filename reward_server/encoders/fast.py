"""The encoder of learned scoring: whole conversations, in bf16 where the processor multiplies it natively.

A vector depends on its text alone, as everywhere: that is measured on load, and where a text in a pack is not bit for
bit what it is alone, texts are computed one at a time (`bf16`) or in fp32 (`auto`). A vector that is not finite is
computed again in fp32. The version names the precision, because the numbers differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from reward_server.encoders.attention import by_kernel, by_products
from reward_server.encoders.encoder import (
    METHOD_MARK,
    TOKENS_PER_BATCH,
    EncoderUnavailable,
    Precision,
    Vectors,
)
from reward_server.encoders.exactness import Forward, is_exact
from reward_server.encoders.minilm import (
    TOKENS_PER_PACK,
    TONE_LAYERS,
    WIDTH,
    EncoderCheckpoint,
    MiniLmEncoder,
    in_packs,
    packaged_folder,
    read_checkpoint,
    use_one_thread,
)
from reward_server.encoders.packed import Bf16Forward, prepacked
from reward_server.encoders.products import FULL_ROWS, Products

MAX_TOKENS = 512
"""As many positions as the model knows."""

BATCH_TOKENS_FUSED = 8192
"""Measured with AMX: a fifth faster than 4,096, for a third of a second on a core."""

_LENGTHS = {2: 9, 3: 64, 12: 17, 23: 3, 70: 2, 150: 2, 290: 1, 323: 1, 512: 1}
"""As many tokens as the largest pack in service: the library may choose its kernels by the number of rows."""
_NATIVE = ("avx512_bf16", "amx_bf16")


class FastEncoder:
    """`TextEncoder` over whole conversations. Blocking and thread-safe; computes in the calling thread."""

    def __init__(self, exact: MiniLmEncoder, packed: Forward | None, method: str = "bf16") -> None:
        """Args: exact: fp32. packed: bf16, or None to compute in fp32 alone. method: what bf16 is called."""
        self._method = "fp32" if packed is None else method
        self._exact = exact
        self._packed = packed
        use_one_thread()
        self._budget = TOKENS_PER_PACK if packed is None or is_exact(packed, _LENGTHS) else 1

    @property
    def version(self) -> str:
        """Identifies weights, method and precision; part of the scoring version."""
        layers = "-".join(map(str, TONE_LAYERS))
        return f"{self._exact.version}/{MAX_TOKENS}/layers-{layers}{METHOD_MARK}{self._method}"

    @property
    def precision(self) -> str:
        """`bf16` or `fp32`."""
        return "fp32" if self._packed is None else "bf16"

    @property
    def batch_tokens(self) -> int:
        """With fused attention twice as many as others: sorted by length, more texts share a call of the kernel."""
        return BATCH_TOKENS_FUSED if self._method.endswith("fused") else TOKENS_PER_BATCH

    @property
    def packs_are_exact(self) -> bool:
        """True if many texts may share a pack on this machine."""
        return self._budget > 1

    @property
    def width(self) -> int:
        """The length of a vector."""
        return self._exact.width

    @property
    def meaning(self) -> int:
        """The number of values at the head of a vector that are the unit vector; the means of inner layers follow."""
        return WIDTH

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, each followed by the means of `TONE_LAYERS`; shape (len(texts), width)."""
        if self._packed is None:
            return self._exact.encode(texts)
        use_one_thread()
        rows = self._exact.tokens(texts)
        vectors = in_packs(rows, self._packed, self._budget, self.width)
        for index in np.flatnonzero(~np.isfinite(vectors).all(axis=1)):
            vectors[index] = self._exact.forward([rows[index]])[0].numpy()
        return vectors


def load_packaged_fast(precision: Precision = "auto") -> FastEncoder:
    """On the weights of the package.

    Raises:
        EncoderUnavailable: weights missing or damaged, or bf16 asked for where it does not exist.
    """
    return fast_encoder(read_checkpoint(packaged_folder()), precision)


def fast_encoder(checkpoint: EncoderCheckpoint, precision: Precision = "auto") -> FastEncoder:
    """Choose what this machine computes best, and measure whether it is exact."""
    weights, tokenizer, version = checkpoint
    exact = MiniLmEncoder(weights, tokenizer, version, MAX_TOKENS, tone=True)
    if precision == "fp32":
        return FastEncoder(exact, None)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu" and not _multiplies_bf16(torch.cpu.get_capabilities()):
        if precision == "bf16":
            raise EncoderUnavailable(
                "LABS_ENCODER_PRECISION=bf16 needs a processor with AVX512-BF16 or AMX, or a GPU: use auto or fp32"
            )
        return FastEncoder(exact, None)
    for packed in _forwards(weights, device):
        encoder = FastEncoder(exact, packed, packed.method)
        if encoder.packs_are_exact:
            return encoder
    return encoder if precision == "bf16" else FastEncoder(exact, None)


def _forwards(weights: Mapping[str, Tensor], device: str) -> Iterator[Bf16Forward]:
    """The ways to compute in bf16, the fastest first; a processor may need filled rows to sum all texts alike."""
    on_tiles = device != "cpu" or bool(torch.cpu.get_capabilities().get("amx_bf16"))
    attention = by_kernel if on_tiles else by_products
    for least_rows in (0, FULL_ROWS) if device == "cpu" else ():
        quickest = prepacked(weights, least_rows, attention)
        if quickest is not None:
            yield quickest
    for least_rows in (0, FULL_ROWS):
        yield Bf16Forward(weights, device, Products(least_rows), attention)


def _multiplies_bf16(capabilities: Mapping[str, object]) -> bool:
    # Without such instructions the library converts to fp32 and back, which is slower than fp32.
    return any(capabilities.get(name) for name in _NATIVE)
