"""Readers beside each other: tutors that are left out are not learned from, and differences are of the same pairs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.quality import readers, tuned_readers
from benchmarks.quality.data import mrbench_pairs
from benchmarks.quality.figures import folds_of
from benchmarks.quality.readers import SHIPPED, Noted, apart, shown
from benchmarks.quality.styles import NATURAL
from benchmarks.quality.token_vectors import TokenLikeness
from benchmarks.quality.tuned_readers import CROSS, TOWERS, WAYS, Reader, tuned
from reward_server.fitting.reward_model.unseen import systems_of
from reward_server.reward_models.conversation import Conversation, ConversationMessage
from reward_server.reward_models.dataset import PreferredPair
from tests.benchmarks.test_quality_few_pairs import replies
from tests.reward_models.talks import KIND, PLAIN
from tests.reward_models.tiny_encoder import make_tiny_encoder

pytestmark = pytest.mark.slow


def pair(group: str, one: str, other: str) -> PreferredPair:
    return PreferredPair(reply_by(group, one), reply_by(group, other), group, systems=(one, other))


def reply_by(group: str, system: str) -> Conversation:
    return Conversation((ConversationMessage("persona", group), ConversationMessage("agent", system)))


def test_pairs_of_tutors_say_who_wrote_both_sides(tmp_path: Path) -> None:
    [found] = mrbench_pairs(replies(tmp_path, [["MR", "MPA"]]))
    assert found.systems == ("1", "0")


def test_neither_dialogue_nor_tutor_of_a_pair_is_learned_from() -> None:
    names = [f"tutor {number}" for number in range(6)]
    pairs = [pair(f"dialogue {n}", one, other) for n in range(10) for one in names for other in names if one < other]
    parts = list(apart(pairs, list(folds_of([each.group for each in pairs]))))
    assert len(parts) == 5 * readers.PARTS
    for learned, asked in parts:
        heard = {name for row in learned for name in systems_of(pairs[row])}
        assert len(learned)
        assert not heard & {name for row in asked for name in systems_of(pairs[row])}
        assert not {pairs[row].group for row in learned} & {pairs[row].group for row in asked}


def test_differences_are_of_the_pairs_that_both_were_asked_about() -> None:
    noted = Noted()
    noted.groups[NATURAL] = ["a", "b", "c", "d"]
    noted.right[NATURAL] |= {SHIPPED: [0.0, 1.0, 1.0, 1.0], CROSS: [1.0, 1.0, np.nan, np.nan], TOWERS: [np.nan] * 4}
    lines = shown("caption", noted).splitlines()
    [own] = [line for line in lines if line.startswith(f"| {CROSS} |")]
    assert own.split("|")[2].strip().startswith("1.000")
    assert lines[lines.index(own) + 1].split("|")[2].strip().startswith("+0.500")
    assert not any(TOWERS in line for line in lines)
    assert lines[-1].endswith("Fine-tuned on 2 of the pairs as judged.")


@pytest.fixture(scope="module")
def brought(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(make_tiny_encoder(tmp_path_factory.mktemp("encoder") / "tiny"))


def test_another_encoder_is_tuned_in_its_last_layers_alone(brought: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuned_readers, "TRAINED_LAYERS", 1)
    for way in WAYS:
        learns = {name for name, each in Reader(way, brought).named_parameters() if each.requires_grad}
        assert {name.split(".attention")[0] for name in learns if ".attention." in name} == {"encoder.encoder.layer.1"}
        assert {"head.weight", "head.bias"} <= learns
        assert not any("embeddings" in name for name in learns)


def test_what_is_tuned_tells_pairs_apart_that_it_saw(brought: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuned_readers, "STEPS", 30)
    monkeypatch.setattr(tuned_readers, "HEAD_RATE", 3e-2)
    pairs = [pair(group, kind, plain) for group in ("hello", "hi") for kind in KIND for plain in PLAIN]
    for way in WAYS:
        margins = tuned(way, brought, pairs, ())(pairs)
        assert margins.shape == (len(pairs),)
        assert (margins > 0).mean() > 0.9


def test_the_same_words_are_nearest_to_each_other(brought: str) -> None:
    [[taken_up, to_the_point], [other, _]] = TokenLikeness(brought)(
        [reply_by("hello.", "hello."), reply_by("hi.", "lamp.")]
    )
    assert taken_up == pytest.approx(1.0, abs=1e-5)
    assert to_the_point == pytest.approx(1.0, abs=1e-5)
    assert other < 0.99
