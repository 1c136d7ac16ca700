"""The learned heads of the local reader, computed with numpy from one safetensors file.

`acts` reads a sentence's vector; `topic`, `commitment` and `background` read rows of features
(`personas.reading.features`): `topic` those of topics alone, `background` those of topics and background. Each is a
small network, an average over a few trainings of it. How they were trained stands in `model/CARD.md`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load

from personas.reading.acts import Act, Stance

Matrix = NDArray[np.float32]
ACTS = tuple(Act)
STANCES = tuple(Stance)
ARTEFACT = "reader.safetensors"
NETWORKS = ("acts", "topic", "commitment", "background")


def _gelu(x: NDArray[np.float64]) -> NDArray[np.float64]:
    # In place, in the order of x * 0.5 * (1 + tanh(0.798 * (x + 0.0447 * x * x * x))): that is most of a head's work.
    inner = 0.044715 * x
    inner *= x
    inner *= x
    inner += x
    inner *= 0.7978845608028654
    np.tanh(inner, out=inner)
    inner += 1.0
    inner *= x * 0.5
    return inner


def _sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1.0 / (1.0 + np.exp(-np.clip(x, -40, 40)))


@dataclass(frozen=True, eq=False)
class Network:
    """Members of equal shape, each normalising its input, with two hidden layers (tanh-GELU)."""

    mean: Matrix
    scale: Matrix
    layers: tuple[tuple[Matrix, Matrix], ...]
    """Weights, shape (members, out, in), and biases, shape (members, out)."""

    @cached_property
    def _steps(self) -> tuple[tuple[NDArray[np.float64], NDArray[np.float64]], ...]:
        """Weights, shape (members, in, out), and biases, shape (members, 1, out), in fp64."""
        return tuple(
            (np.ascontiguousarray(weight.transpose(0, 2, 1), dtype=np.float64), bias[:, None, :].astype(np.float64))
            for weight, bias in self.layers
        )

    def logits(self, rows: Matrix) -> NDArray[np.float64]:
        """Shape (members, len(rows), outputs); the same rows give the same bits, in whatever call."""
        hidden: NDArray[np.float64] = ((rows.astype(np.float64) - self.mean) / self.scale)[None]
        for number, (weight, bias) in enumerate(self._steps):
            hidden = hidden @ weight + bias
            if number < len(self._steps) - 1:
                hidden = _gelu(hidden)
        return hidden


@dataclass(frozen=True, slots=True, eq=False)
class ReaderHeads:
    """All heads and the digest of the file they came from."""

    digest: str
    acts: Network
    topic: Network
    commitment: Network
    background: Network

    def acts_of(self, vectors: Matrix) -> Matrix:
        """As `act_probabilities`."""
        return act_probabilities(self.acts, vectors)

    def topics_of(self, features: Matrix) -> NDArray[np.float64]:
        """The probability of each row, shape (rows,)."""
        return probabilities(self.topic, features)

    def background_of(self, features: Matrix) -> NDArray[np.float64]:
        """The probability of each row of features of topics and background, shape (rows,)."""
        return probabilities(self.background, features)

    def commitments_of(self, features: Matrix) -> NDArray[np.float64]:
        """The probability of each row, shape (rows,)."""
        return probabilities(self.commitment, features)


def act_probabilities(head: Network, vectors: Matrix) -> Matrix:
    """Probabilities, shape (len(vectors), acts + stances): acts are independent, stances add up to 1."""
    logits = head.logits(vectors)
    acts = _sigmoid(logits[..., : len(ACTS)]).mean(axis=0)
    exact = np.exp(logits[..., len(ACTS) :] - logits[..., len(ACTS) :].max(axis=-1, keepdims=True))
    stances = (exact / exact.sum(axis=-1, keepdims=True)).mean(axis=0)
    return np.round(np.concatenate([acts, stances], axis=1), 4).astype(np.float32)


def probabilities(network: Network, features: Matrix) -> NDArray[np.float64]:
    """The mean probability of a network with one output, rounded to four decimals, shape (rows,)."""
    if not len(features):
        return np.zeros(0)
    mean: NDArray[np.float64] = np.round(_sigmoid(network.logits(features)[..., 0]).mean(axis=0), 4)
    return mean


def load_heads(raw: bytes | None = None) -> ReaderHeads:
    """The packaged heads, or those of a file's bytes."""
    raw = raw or (files("personas.reading") / "model" / ARTEFACT).read_bytes()
    tensors = load(raw)
    return ReaderHeads(hashlib.sha256(raw).hexdigest()[:12], *(network_of(tensors, name) for name in NETWORKS))


def network_of(tensors: dict[str, NDArray[np.float32]], name: str) -> Network:
    """One head of an artefact."""
    count = sum(key.startswith(f"{name}.weight.") for key in tensors)
    layers = tuple((tensors[f"{name}.weight.{n}"], tensors[f"{name}.bias.{n}"]) for n in range(count))
    return Network(tensors[f"{name}.mean"], tensors[f"{name}.scale"], layers)
