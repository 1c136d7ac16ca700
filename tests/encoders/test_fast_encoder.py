"""The encoder of learned scoring: bf16 near fp32, exact per text, and fp32 where bf16 cannot be had."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
import torch

from reward_server.encoders import fast, products
from reward_server.encoders.encoder import same_weights
from reward_server.encoders.exactness import Tokens
from reward_server.encoders.fast import FastEncoder, fast_encoder
from reward_server.encoders.loading import load_encoder, load_fast_encoder
from reward_server.encoders.minilm import (
    TOKENS_PER_PACK,
    EncoderCheckpoint,
    MiniLmEncoder,
    packaged_folder,
    read_checkpoint,
)
from reward_server.encoders.packed import Bf16Forward, prepacked

WORDS = ["the", "pain", "began", "at", "night", "when", "I", "was", "out", "order", "refund", "account", "router"]


def _texts(count: int, longest: int, seed: int = 5) -> list[str]:
    dice = random.Random(seed)
    return [" ".join(dice.choices(WORDS, k=dice.randint(1, longest))) + f" {number}" for number in range(count)]


@pytest.fixture(scope="module")
def checkpoint() -> EncoderCheckpoint:
    return read_checkpoint(packaged_folder())


@pytest.fixture(scope="module")
def exact(checkpoint: EncoderCheckpoint) -> MiniLmEncoder:
    return MiniLmEncoder(*checkpoint, 512, tone=True)


@pytest.fixture(scope="module")
def in_bf16(checkpoint: EncoderCheckpoint, exact: MiniLmEncoder) -> FastEncoder:
    """Made by hand: bf16 gives the same kind of numbers, only slowly, where the processor cannot multiply it."""
    return FastEncoder(exact, Bf16Forward(checkpoint.weights))


def test_bf16_is_close_to_fp32(in_bf16: FastEncoder, exact: MiniLmEncoder) -> None:
    texts = [*_texts(24, 120), "", "word " * 600]
    quick, slow = in_bf16.encode(texts), exact.encode(texts)
    assert quick.shape == slow.shape == (len(texts), in_bf16.width)
    assert np.allclose(np.linalg.norm(quick[:, : in_bf16.meaning], axis=1), 1.0, atol=1e-5)
    for part in range(0, in_bf16.width, in_bf16.meaning):
        left, right = (vectors[:, part : part + in_bf16.meaning] for vectors in (quick, slow))
        lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
        assert ((left * right).sum(axis=1) / lengths).min() > 0.999


def test_inner_layers_follow_the_vector_that_personas_hear(checkpoint: EncoderCheckpoint, exact: MiniLmEncoder) -> None:
    texts = [*_texts(6, 40), "no", ""]
    alone, layered = MiniLmEncoder(*checkpoint, 512).encode(texts), exact.encode(texts)
    assert np.array_equal(layered[:, :384], alone)
    inner = [layered[:, start : start + 384] for start in (384, 768, 1152)]
    assert layered.shape == (len(texts), 1536)
    assert all(not np.allclose(one, other) for one, other in zip(inner, [*inner[1:], alone], strict=True))


def test_a_vector_is_the_mean_of_the_states_of_its_tokens(exact: MiniLmEncoder) -> None:
    rows = sorted(exact.tokens([*_texts(5, 30), "no"]), key=len)
    states = exact.hidden(rows).split([len(row) for row in rows])
    means = torch.stack([each.mean(0) for each in states])
    found = torch.nn.functional.normalize(means, dim=1)
    np.testing.assert_allclose(found, exact.forward(rows)[:, :384], atol=1e-6)


def test_bf16_and_fp32_differ(in_bf16: FastEncoder, exact: MiniLmEncoder) -> None:
    texts = _texts(4, 40)
    quick, slow = in_bf16.encode(texts), exact.encode(texts)
    assert not np.array_equal(quick, slow)


@pytest.mark.slow
def test_a_vector_is_bitwise_the_same_in_any_batch_and_order(in_bf16: FastEncoder) -> None:
    texts = [*_texts(40, 90), *_texts(3, 450, seed=6), "", "no", "no.", "yes"]
    alone = {text: in_bf16.encode([text])[0] for text in texts}
    dice = random.Random(1)
    for size in (2, 11, len(texts)):
        part = dice.sample(texts, size)
        for text, vector in zip(part, in_bf16.encode(part), strict=True):
            assert np.array_equal(vector, alone[text])


def test_a_whole_conversation_counts_up_to_512_tokens(in_bf16: FastEncoder, exact: MiniLmEncoder) -> None:
    start = "pain " * 300
    assert not np.array_equal(*in_bf16.encode([start + "at night", start + "at work"]))
    assert not np.array_equal(*exact.encode([start + "at night", start + "at work"]))
    beyond = "pain " * 600
    assert np.array_equal(*in_bf16.encode([beyond + "at night", beyond + "at work"]))
    matcher = load_encoder()
    assert np.array_equal(*matcher.encode([start + "at night", start + "at work"]))  # as personas have always heard


def test_the_version_names_the_precision_and_leaves_that_of_personas_alone(
    checkpoint: EncoderCheckpoint, in_bf16: FastEncoder, exact: MiniLmEncoder
) -> None:
    assert load_encoder().version == checkpoint.version == "minilm-l6-v2/53aa51172d14/1"
    in_fp32 = FastEncoder(exact, None)
    assert in_bf16.version == "minilm-l6-v2/53aa51172d14/1/512/layers-2-4-5+bf16"
    assert in_fp32.version == "minilm-l6-v2/53aa51172d14/1/512/layers-2-4-5+fp32"
    assert same_weights(in_bf16.version, in_fp32.version)
    assert not same_weights(in_bf16.version, checkpoint.version)


def test_what_is_not_finite_in_bf16_is_computed_in_fp32(exact: MiniLmEncoder) -> None:
    def broken(rows: Sequence[Tokens]) -> torch.Tensor:
        vectors = exact.forward(rows).clone()
        for row, vector in zip(rows, vectors, strict=True):
            if len(row) > 10:
                vector[3] = float("nan")
        return vectors

    texts = ["a short one", "a longer one " * 9, "another long one " * 9]
    assert np.array_equal(FastEncoder(exact, broken).encode(texts), exact.encode(texts))


def test_scores_too_large_for_an_exponential_are_noticed(checkpoint: EncoderCheckpoint, exact: MiniLmEncoder) -> None:
    name = "encoder.layer.2.attention.self.query.weight"
    loud = {**checkpoint.weights, name: checkpoint.weights[name] * 1e4}
    forward = Bf16Forward(loud)
    assert not torch.isfinite(forward([[101, 2023, 2003, 102]])).all()
    assert np.isfinite(FastEncoder(exact, forward).encode(["this is loud"])).all()


class DependsOnNeighbours:
    """A forward pass whose vectors differ with the number of texts in a pack."""

    method = "bf16"

    def __init__(self, *how: object) -> None: ...

    def __call__(self, rows: Sequence[Tokens]) -> torch.Tensor:
        rising = torch.ones(len(rows), 1536) + len(rows) * torch.eye(len(rows), 1536)
        return torch.nn.functional.normalize(rising, dim=1)


def test_where_packs_are_not_exact_bf16_computes_one_at_a_time(exact: MiniLmEncoder) -> None:
    encoder = FastEncoder(exact, DependsOnNeighbours())
    assert not encoder.packs_are_exact
    together = encoder.encode(["one", "two", "three"])
    assert np.array_equal(together, np.stack([encoder.encode([text])[0] for text in ("one", "two", "three")]))


def test_the_largest_pack_of_service_is_measured(exact: MiniLmEncoder) -> None:
    """A library that sums otherwise in a full pack alone is found out."""

    def other_in_a_full_pack(rows: Sequence[Tokens]) -> torch.Tensor:
        return torch.ones(len(rows), 1536) * (2.0 if sum(map(len, rows)) >= TOKENS_PER_PACK else 1.0)

    assert not FastEncoder(exact, other_in_a_full_pack).packs_are_exact


def test_auto_takes_fp32_where_bf16_is_not_exact(
    checkpoint: EncoderCheckpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fast, "Bf16Forward", DependsOnNeighbours)
    monkeypatch.setattr(fast, "prepacked", lambda *how: None)
    monkeypatch.setattr(fast, "_multiplies_bf16", lambda capabilities: True)
    assert fast_encoder(checkpoint).precision == "fp32"


@pytest.mark.slow
def test_rows_are_filled_up_where_the_number_of_rows_changes_the_sums(
    checkpoint: EncoderCheckpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def summed_otherwise(self: object, rows: torch.Tensor, pair: products.Pair, residual: torch.Tensor) -> torch.Tensor:
        product = torch.nn.functional.linear(rows, *pair) + residual
        return product * 1.5 if 32 < rows.shape[0] < products.FULL_ROWS and rows.shape[1] > 384 else product

    monkeypatch.setattr(products.Products, "_added", summed_otherwise)
    monkeypatch.setattr(fast, "prepacked", lambda *how: None)
    monkeypatch.setattr(fast, "_multiplies_bf16", lambda capabilities: True)
    encoder = fast_encoder(checkpoint)
    assert (encoder.precision, encoder.packs_are_exact) == ("bf16", True)
    texts = _texts(6, 40)
    assert np.array_equal(encoder.encode(texts), np.concatenate([encoder.encode([text]) for text in texts]))


def test_a_processor_without_bf16_gets_fp32(checkpoint: EncoderCheckpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_f": True, "avx512_bf16": False})
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert fast_encoder(checkpoint).precision == "fp32"


def test_fp32_can_be_asked_for_and_equals_the_exact_encoder(exact: MiniLmEncoder) -> None:
    encoder = load_fast_encoder(precision="fp32")
    texts = _texts(5, 40)
    assert np.array_equal(encoder.encode(texts), exact.encode(texts))
    assert encoder.encode([]).shape == (0, 1536)


def test_prepacked_products_are_those_of_the_public_functions(checkpoint: EncoderCheckpoint) -> None:
    rows = [[101, *range(3000, 3000 + length), 102] for length in (1, 1, 9, 40)]
    quick = prepacked(checkpoint.weights)
    assert quick is not None  # this torch has the operators
    assert (quick(rows) * Bf16Forward(checkpoint.weights)(rows)).sum(dim=1).min() > 0.9999


@pytest.mark.slow
def test_without_the_private_operators_the_public_ones_do(
    checkpoint: EncoderCheckpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(self: object, rows: object, pair: object) -> torch.Tensor:
        raise AttributeError("'_OpNamespace' 'mkldnn' object has no attribute '_linear_pointwise'")

    monkeypatch.setattr(products.PrepackedProducts, "plain", missing)
    monkeypatch.setattr(fast, "_multiplies_bf16", lambda capabilities: True)
    assert prepacked(checkpoint.weights) is None
    assert fast_encoder(checkpoint).precision == "bf16"


def test_other_results_of_the_private_operators_are_not_used(
    checkpoint: EncoderCheckpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_residual(self: products.Products, rows: torch.Tensor, pair: products.Pair, residual: torch.Tensor):  # type: ignore[no-untyped-def]
        return self.plain(rows, pair)

    monkeypatch.setattr(products.PrepackedProducts, "_added", without_residual)
    assert prepacked(checkpoint.weights) is None
