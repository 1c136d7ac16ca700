"""Fine-tuning a real, tiny encoder: phase 1 leaves it alone, phase 2 moves it, and it is served as it was tuned."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from safetensors.torch import load, load_file, save

from reward_server.errors import EncoderUnavailable, UnusableModel
from reward_server.reward_models.dataset import split
from reward_server.reward_models.finetune import Tuned, Tuning, fine_tune, load_base, load_tuned, tuned_encoder
from reward_server.reward_models.tuning_net import TuningNet, transformer_of
from tests.reward_models.talks import labelled_talks, preferred_talks
from tests.reward_models.tiny_encoder import make_tiny_encoder

TUNING = Tuning(head_epochs=2, epochs=2, batch=16, encoder_rate=3e-3)
PARTS = split(labelled_talks(count=96), 0)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(make_tiny_encoder(tmp_path_factory.mktemp("encoder") / "tiny"))


@pytest.fixture(scope="module")
def tuned(tiny: str) -> Tuned:
    return fine_tune(tiny, PARTS.train, PARTS.validation, TUNING)


def distance(tiny: str, weights: bytes) -> float:
    """How far weights are from those of the folder."""
    before, after = load_file(Path(tiny) / "model.safetensors"), load(weights)
    before = {name.removeprefix("bert."): tensor for name, tensor in before.items()}
    common = [name for name in after if name in before]
    assert len(common) > 10
    return sum(float((after[name] - before[name]).abs().sum()) for name in common)


def test_phase_two_moves_the_encoder_and_lowers_the_loss(tiny: str, tuned: Tuned) -> None:
    assert distance(tiny, tuned.weights) > 1.0
    assert tuned.tuned_loss < tuned.frozen_loss


def test_without_phase_two_the_encoder_is_what_it_was(tiny: str) -> None:
    found = fine_tune(tiny, PARTS.train, PARTS.validation, replace(TUNING, epochs=0))
    assert distance(tiny, found.weights) == 0.0


def test_the_same_data_and_seed_give_the_same_encoder(tiny: str, tuned: Tuned) -> None:
    assert fine_tune(tiny, PARTS.train, PARTS.validation, TUNING) == tuned


def test_an_encoder_learns_from_preferences_too(tiny: str) -> None:
    parts = split(preferred_talks(count=80), 0)
    found = fine_tune(tiny, parts.train, parts.validation, TUNING)
    assert found.tuned_loss < 0.6931
    assert distance(tiny, found.weights) > 1.0


def test_every_epoch_is_reported(tiny: str) -> None:
    seen: list[tuple[int, int]] = []
    fine_tune(tiny, PARTS.train, PARTS.validation, TUNING, lambda done, total: seen.append((done, total)))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_tuned_weights_are_served_as_they_were_tuned(tiny: str, tuned: Tuned, tmp_path: Path) -> None:
    (tmp_path / "encoder.safetensors").write_bytes(tuned.weights)
    stored = load_tuned(tiny, tmp_path / "encoder.safetensors")
    texts = ["please thanks", "bike", "hello well"]
    np.testing.assert_array_equal(stored.encode(texts), tuned_encoder(tiny, tuned.weights).encode(texts))
    assert stored.version.startswith("tuned/")
    assert stored.version == tuned_encoder(tiny, tuned.weights).version


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_tuned_packaged_encoder_is_computed_in_the_precision_of_the_setting(
    precision: Literal["fp32", "bf16"], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    weights = tmp_path / "encoder.safetensors"
    weights.write_bytes(save(dict(transformer_of(load_base("packaged")).state_dict())))
    monkeypatch.setattr("reward_server.encoders.fast.fast_encoder", lambda _, given="auto": asked.append(given))
    load_tuned("packaged", weights, precision)
    assert asked == [precision]


def test_weights_of_another_encoder_are_refused(tuned: Tuned, tmp_path: Path) -> None:
    (tmp_path / "encoder.safetensors").write_bytes(tuned.weights)
    with pytest.raises(UnusableModel, match="does not fit the encoder"):
        load_tuned("packaged", tmp_path / "encoder.safetensors")


def test_an_encoder_that_is_not_there_is_no_other_encoder(tmp_path: Path) -> None:
    with pytest.raises(EncoderUnavailable, match="no model folder"):
        fine_tune(str(tmp_path / "nothing"), PARTS.train, PARTS.validation, TUNING)


def test_a_frozen_encoder_computes_each_text_once_and_an_unfrozen_one_anew(
    tiny: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = TuningNet(load_base(tiny), 32, [0.0], torch.Generator().manual_seed(0)).eval()
    asked: list[str] = []
    preprocess = net.model.preprocess

    def counted(texts: list[str]) -> object:
        asked.extend(texts)
        return preprocess(texts)

    monkeypatch.setattr(net.model, "preprocess", counted)
    sides = [("please", "bike lamp", "lamp"), ("please", "thanks", "thanks")]
    net.freeze(True)
    first, again = net(sides), net(sides)
    assert asked == ["please", "bike lamp", "lamp", "thanks"]
    assert torch.equal(first, again)
    net.freeze(False)
    fresh = net(sides)
    assert len(asked) == 8
    torch.testing.assert_close(fresh, first)
    fresh.sum().backward()
    assert all(p.grad is not None for name, p in net.model.named_parameters() if "layer.0" in name)
