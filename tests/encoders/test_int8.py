"""The encoder in 8-bit numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from reward_server.encoders import int8
from reward_server.encoders.int8 import INT8, Int8ByFloats, Int8Products, multiplies_int8
from reward_server.encoders.minilm import EncoderCheckpoint, MiniLmEncoder, packaged_folder, read_checkpoint

TEXTS = [
    "When did it start?",
    "That sounds exhausting, and you did well to call.",
    "I'll send you a replacement today, free of charge, and you keep the jug that leaks until it is there.",
    "Yes.",
    "pain " * 300,
]


@pytest.fixture(scope="module")
def checkpoint() -> EncoderCheckpoint:
    return read_checkpoint(packaged_folder())


@pytest.fixture(scope="module")
def encoder(checkpoint: EncoderCheckpoint) -> MiniLmEncoder:
    return MiniLmEncoder(*checkpoint, ways=INT8)


@pytest.fixture
def broken_products(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A processor that cuts large sums off, as those without native int8 do."""
    right = torch._int_mm
    monkeypatch.setattr(torch, "_int_mm", lambda *matrices: right(*matrices).clamp(max=2**24))
    int8.multiplies_int8.cache_clear()
    yield
    monkeypatch.undo()
    int8.multiplies_int8.cache_clear()


def test_vectors_are_near_those_of_fp32(encoder: MiniLmEncoder, checkpoint: EncoderCheckpoint) -> None:
    expected = MiniLmEncoder(*checkpoint).encode(TEXTS)
    found = encoder.encode(TEXTS)
    assert (found * expected).sum(axis=1).min() > 0.99
    assert not np.array_equal(found, expected)


def test_a_vector_is_bitwise_the_same_alone_and_in_a_pack(encoder: MiniLmEncoder) -> None:
    assert encoder.packs_are_exact
    assert np.array_equal(encoder.encode(TEXTS), np.stack([encoder.encode([text])[0] for text in TEXTS]))


@pytest.mark.slow
def test_both_ways_to_multiply_give_the_same_bits(encoder: MiniLmEncoder, checkpoint: EncoderCheckpoint) -> None:
    by_floats = MiniLmEncoder(*checkpoint, ways=[Int8ByFloats()])
    assert np.array_equal(by_floats.encode(TEXTS), encoder.encode(TEXTS))


@pytest.mark.usefixtures("broken_products")
def test_a_processor_that_multiplies_int8_wrongly_takes_floats(checkpoint: EncoderCheckpoint) -> None:
    with pytest.raises(NotImplementedError, match="int8"):
        Int8Products().laid_out((torch.ones(2, 4), torch.zeros(2)))
    taken = MiniLmEncoder(*checkpoint, ways=INT8)
    assert np.array_equal(taken.encode(TEXTS), MiniLmEncoder(*checkpoint, ways=[Int8ByFloats()]).encode(TEXTS))


@pytest.mark.parametrize("way", INT8 if multiplies_int8() else INT8[1:])
def test_products_of_rows_at_the_limits_are_finite(way: Int8Products) -> None:
    weight = torch.linspace(-1, 1, 2048).reshape(1, 2048).repeat(3, 1)
    pair = way.laid_out((weight, torch.tensor([0.0, 1.0, -1.0])))
    rows = torch.stack([torch.zeros(2048), torch.full((2048,), 5.0), torch.full((2048,), -1e6), weight[0] * 1e3])
    found, expected = way.plain(rows, pair), torch.nn.functional.linear(rows, weight, torch.tensor([0.0, 1.0, -1.0]))
    assert torch.isfinite(found).all()
    assert torch.allclose(found[0], expected[0], rtol=0, atol=1e-6)
    assert torch.allclose(found, expected, rtol=0.02, atol=60.0)
