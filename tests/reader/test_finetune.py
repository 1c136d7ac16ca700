"""Training the reader's encoder: what is frozen, what is kept, and that a few steps teach something."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from reward_server.encoders.minilm import LAYERS, EncoderCheckpoint, load_packaged, packaged_folder, read_checkpoint
from reward_server.fitting.reader.dataset import ReaderRow
from reward_server.fitting.reader.finetune import fine_tune
from reward_server.fitting.reader.tuner import LOWEST, Tuner
from scenarios.library import load_library
from scenarios.turns import LabelledTurn

NAME = ("tutoring", "half-a-cup")
TEXTS = ["Which piece is bigger?", "How do you add the two numbers at the bottom, and why?", "Hello there!"]


@pytest.fixture(scope="module")
def checkpoint() -> EncoderCheckpoint:
    return read_checkpoint(packaged_folder())


def test_untrained_the_tuner_gives_the_vectors_of_the_encoder(checkpoint: EncoderCheckpoint) -> None:
    tuner = Tuner(checkpoint).eval()
    tuner.keep(TEXTS)
    with torch.no_grad():
        found = tuner([TEXTS[2], *TEXTS]).numpy()
    exact = load_packaged().encode(TEXTS)
    assert np.array_equal(found[0], found[3])
    assert ((found[1:] * exact).sum(axis=1) > 0.999).all()  # bf16


@pytest.mark.slow
def test_training_moves_the_upper_layers_alone_and_lowers_the_loss(checkpoint: EncoderCheckpoint) -> None:
    case = load_library(only=["/".join(NAME)]).vault.open(*NAME).case
    rows = [
        ReaderRow(*NAME, LabelledTurn(text, (topic.id,), (), "specific"))
        for topic in case.topics
        for text in topic.examples[:4]
    ]
    losses: list[float] = []
    epochs: list[int] = []
    weights = fine_tune(
        checkpoint,
        {NAME: (case, rows)},
        [],
        epochs=6,
        progress=lambda _step, _of, loss: losses.append(loss),
        after_epoch=lambda epoch, _weights: epochs.append(epoch),
    )
    trained = tuple(f"encoder.layer.{number}." for number in range(LOWEST, LAYERS))
    for name, before in checkpoint.weights.items():
        same = torch.equal(weights[name], before.half().float() if name.startswith(trained) else before)
        assert same != name.startswith(trained), name
    assert losses[-1] < losses[0]
    assert epochs == [1, 2, 3, 4, 5, 6]
