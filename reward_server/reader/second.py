"""The second reading of a commitment: a small cross-encoder that decides whether a turn makes it.

Two segments: what the commitment is (its id in words, and the first of its examples), and what was said (the end of
the persona's line, and the turn). The packaged encoder's lower layers read each alone, so that a commitment is read
once; the upper ones, which were trained for it, read both together. The means of both segments go through a small head.

A pair is computed alone, so its result is the same in whatever call. The weights are kept as int8, a scale a row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F  # noqa: N812 (the name the field uses)
from safetensors.torch import load
from tokenizers import Tokenizer
from torch import Tensor

from personas.case.compiled import CompiledCommitment
from personas.reading.second import Put, SecondReader
from personas.text.memory import Memory
from reward_server.encoders.minilm import LAYERS, WIDTH, EncoderCheckpoint, use_one_thread
from reward_server.reader.encoder import artefact_bytes
from reward_server.reader.layer import Layer

ARTEFACT = "second.safetensors"
LOWER = 3
"""So many layers read the segments alone."""
FIRST, END = 101, 102
DESCRIBED_TOKENS, SAID_TOKENS, LINE_TOKENS = 72, 64, 28
EXAMPLES = 4
KEPT, KEPT_BYTES = 16_384, 4_000_000
DESCRIBED_BYTES = 64_000_000
"""Of this size are the descriptions whose states are kept: 600 of the longest."""

Ids = tuple[int, ...]


def described(tokenizer: Tokenizer, name: str, examples: Sequence[str]) -> Ids:
    """The tokens that say what a commitment is."""
    ids = [FIRST, *_tokens(tokenizer, name.replace("_", " ")), END]
    for example in examples[:EXAMPLES]:
        more = _tokens(tokenizer, example)
        if len(ids) + len(more) + 1 > DESCRIBED_TOKENS:
            break
        ids += [*more, END]
    return tuple(ids)


def spoken(tokenizer: Tokenizer, line: str, said: str) -> tuple[Ids, int]:
    """The tokens of what was said after a line of the persona, and where the agent's words begin among them."""
    before = _tokens(tokenizer, line)[-LINE_TOKENS:] if line else []
    return (*before, END, *_tokens(tokenizer, said)[:SAID_TOKENS], END), len(before) + 1


def _tokens(tokenizer: Tokenizer, text: str) -> list[int]:
    # A lone surrogate cannot be tokenised; such a character carries no meaning here anyway.
    readable = text.encode("utf-8", "replace").decode()
    ids: list[int] = tokenizer.encode(readable, add_special_tokens=False).ids
    return ids


class CrossEncoder(SecondReader):
    """`SecondReader` on the packaged encoder and an artefact."""

    def __init__(self, packaged: EncoderCheckpoint, raw: bytes) -> None:
        """Read with these; `raw` are the bytes of an artefact."""
        self._tokenizer = Tokenizer.from_str(packaged.tokenizer.to_str())
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        weights = unpacked(load(raw))
        self._digest = hashlib.sha256(raw).hexdigest()[:12]
        self._embedding = {key: value for key, value in packaged.weights.items() if key.startswith("embeddings.")}
        self._lower = [Layer(packaged.weights, number) for number in range(LOWER)]
        self._upper = [Layer(weights, number) for number in range(LOWER, LAYERS)]
        self._head = {key.removeprefix("head."): value for key, value in weights.items() if key.startswith("head.")}
        self._described: Memory[CompiledCommitment, Tensor] = Memory(
            KEPT, size_bytes=DESCRIBED_BYTES, cost=lambda _, states: 4 * states.numel()
        )
        self._made: Memory[tuple[CompiledCommitment, str, str], float] = Memory(
            KEPT, size_bytes=KEPT_BYTES, cost=lambda key, _: len(key[1]) + len(key[2])
        )

    @property
    def version(self) -> str:
        """Identifies the artefact; part of the scoring version."""
        return f"second/{self._digest}"

    @property
    def held_bytes(self) -> int:
        """What is remembered."""
        return self._described.held_bytes + self._made.held_bytes

    def made(self, puts: Sequence[Put]) -> list[float]:
        """The log odds that each commitment is made; blocking."""
        keys = [(put.commitment, put.line, put.said) for put in puts]
        found = self._made.recall(keys)
        missing = [key for key in dict.fromkeys(keys) if key not in found]
        heard = {(line, said): self._heard(line, said) for _, line, said in missing}
        fresh = {key: self._log_odds(key[0], *heard[key[1:]]) for key in missing}
        self._made.keep(fresh)
        found |= fresh
        return [found[key] for key in keys]

    @torch.inference_mode()
    def _heard(self, line: str, said: str) -> tuple[Tensor, int]:
        """What was said after the lower layers, and where in it the agent's words begin."""
        use_one_thread()
        ids, start = spoken(self._tokenizer, line, said)
        return self._alone(ids, segment=1), start

    @torch.inference_mode()
    def _log_odds(self, commitment: CompiledCommitment, heard: Tensor, start: int) -> float:
        what = self._states_of(commitment)
        hidden = torch.cat([what, heard])
        for layer in self._upper:
            hidden = layer(hidden)
        return round(
            float(log_odds(hidden[: len(what)].mean(0)[None], hidden[len(what) + start :].mean(0)[None], self._head)), 4
        )

    def _states_of(self, commitment: CompiledCommitment) -> Tensor:
        found = self._described.recall([commitment])
        if commitment in found:
            return found[commitment]
        states = self._alone(described(self._tokenizer, commitment.id, commitment.examples), segment=0)
        self._described.keep({commitment: states})
        return states

    def _alone(self, ids: Ids, segment: int) -> Tensor:
        """A segment after the lower layers, shape (tokens, width)."""
        hidden = self._embedding["embeddings.word_embeddings.weight"][torch.tensor(ids)]
        hidden = hidden + self._embedding["embeddings.position_embeddings.weight"][: len(ids)]
        hidden = hidden + self._embedding["embeddings.token_type_embeddings.weight"][segment]
        norm = (self._embedding["embeddings.LayerNorm.weight"], self._embedding["embeddings.LayerNorm.bias"])
        hidden = F.layer_norm(hidden, (WIDTH,), *norm, 1e-12)
        for layer in self._lower:
            hidden = layer(hidden)
        return hidden


def log_odds(what: Tensor, said: Tensor, head: Mapping[str, Tensor], dropout: float = 0.0) -> Tensor:
    """From the means of both segments, shape (pairs, width) each, to shape (pairs,)."""
    what, said = F.normalize(what, dim=1), F.normalize(said, dim=1)
    likeness = what * said
    features = torch.cat([what, said, (what - said).abs(), likeness], dim=1) * (WIDTH**0.5 / 4)
    hidden = F.dropout(F.gelu(F.linear(features, head["hidden.weight"], head["hidden.bias"])), dropout, dropout > 0)
    found = F.linear(hidden, head["out.weight"], head["out.bias"])[:, 0]
    return found + head["scale"][0] * likeness.sum(1) + head["scale"][1]


def packed(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of an artefact: matrices as int8 with a scale a row, the rest as they are."""
    found: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        if tensor.dim() < 2:
            found[name] = tensor.detach().float().contiguous()
            continue
        scale = tensor.detach().abs().amax(1, keepdim=True).clamp(min=1e-8) / 127
        found[name] = (tensor.detach() / scale).round().to(torch.int8).contiguous()
        found[f"{name}.rows"] = scale.contiguous()
    return found


def unpacked(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of an artefact in fp32."""
    scales = {name for name in tensors if name.endswith(".rows")}
    return {
        name: tensor.float() * tensors[f"{name}.rows"] if f"{name}.rows" in scales else tensor
        for name, tensor in tensors.items()
        if name not in scales
    }


def packaged_second(packaged: EncoderCheckpoint) -> CrossEncoder:
    """The one that comes with the package; blocking."""
    return CrossEncoder(packaged, artefact_bytes(ARTEFACT))
