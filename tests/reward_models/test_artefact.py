"""A model on disk: whole or not at all, verified, and named after its content."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reward_server.errors import InvalidRequest, UnusableModel
from reward_server.reward_models import artefact
from reward_server.reward_models.artefact import DataCard
from reward_server.reward_models.heads import Heads

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def some_heads(seed: int = 0, width: int = 6) -> Heads:
    source = np.random.default_rng(seed)

    def numbers(*shape: int) -> np.ndarray:
        return source.normal(size=shape).astype(np.float32)

    scale = np.ones(width, dtype=np.float32)
    return Heads(("score", "tone"), numbers(width), scale, numbers(2, width), numbers(2), 2.5)


def about(**changes: Any) -> dict[str, Any]:
    data = DataCard(sha256="0" * 64, labelled=40, pairs=0, groups=8, grouped_by="group", source="file")
    fields: dict[str, Any] = {
        "data": data,
        "split": {"train": 30, "validation": 4, "held_out": 6, "duplicates_removed": 0},
        "recipe": {"seed": 0},
        "encoder": "packaged",
        "encoder_version": "encoder/1",
        "features_version": "counts/1",
        "code_version": "0.1.0",
        "engine": "e" * 64,
    }
    return {**fields, **changes}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    card = artefact.write(tmp_path / "m", some_heads(), about(), NOW, extras={"more.bin": b"1"}, beside={"p.png": b"2"})
    found = artefact.read(tmp_path / "m")
    assert found.card == card
    assert found.heads.weights.tobytes() == some_heads().weights.tobytes()
    assert (found.heads.names, found.heads.sharpness) == (("score", "tone"), 2.5)
    assert found.extras == {"more.bin": b"1"}
    assert found.encoder_weights is None
    assert (tmp_path / "m" / "p.png").read_bytes() == b"2"


def test_the_id_names_the_content_not_the_moment(tmp_path: Path) -> None:
    first = artefact.write(tmp_path / "a", some_heads(), about(), NOW)
    later = artefact.write(tmp_path / "b", some_heads(), about(), NOW + timedelta(days=1), beside={"p.png": b"2"})
    assert first.id == later.id
    others = [
        artefact.write(tmp_path / "c", some_heads(seed=1), about(), NOW).id,
        artefact.write(tmp_path / "d", some_heads(), about(encoder_version="encoder/2"), NOW).id,
        artefact.write(tmp_path / "e", some_heads(), about(), NOW, encoder=b"tuned").id,
        artefact.write(tmp_path / "f", some_heads(), about(), NOW, extras={"more.bin": b"1"}).id,
    ]
    assert len({first.id, *others}) == 5


def test_a_folder_that_holds_something_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InvalidRequest, match="is not empty"):
        artefact.write(tmp_path, some_heads(), about(), NOW)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="cannot be written"):
        artefact.write(tmp_path / "m", some_heads(), about(), NOW, beside={"no/such/folder.png": b""})
    assert not list(tmp_path.iterdir())


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _edit_card(**changes: Any) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        card = json.loads((folder / "card.json").read_text())
        (folder / "card.json").write_text(json.dumps({**card, **changes}))

    return edit


@pytest.mark.parametrize(
    ("damage", "line"),
    [
        (lambda folder: _cut(folder / "heads.safetensors"), "has another hash than its card says"),
        (lambda folder: (folder / "heads.safetensors").unlink(), "heads.safetensors is missing"),
        (lambda folder: (folder / "card.json").unlink(), "no readable card.json"),
        (lambda folder: (folder / "card.json").write_text("{}"), "is no card of schema labs.reward-model/1"),
        (_edit_card(schema="labs.reward-model/9"), "is no card of schema"),
        (_edit_card(encoder_version="encoder/2"), "was changed"),
        (_edit_card(metrics={"score": {"r2": {"value": 0.99}}}), "was changed"),
        (_edit_card(id="rm_" + "1" * 12), "was changed"),
    ],
)
def test_a_damaged_or_changed_model_is_refused(tmp_path: Path, damage: Callable[[Path], None], line: str) -> None:
    artefact.write(tmp_path / "m", some_heads(), about(), NOW)
    damage(tmp_path / "m")
    with pytest.raises(UnusableModel, match=line):
        artefact.read(tmp_path / "m")


def test_nothing_in_it_is_a_pickle(tmp_path: Path) -> None:
    artefact.write(tmp_path / "m", some_heads(), about(), NOW)
    assert {path.suffix for path in (tmp_path / "m").iterdir()} == {".safetensors", ".json"}


NAN = np.array([np.nan, 0.0], dtype=np.float32)


@pytest.mark.parametrize(
    "poison",
    [
        {"bias": NAN},
        {"bias": np.zeros(3, np.float32)},
        {"centre": np.full(6, np.inf, np.float32)},
        {"centre": np.zeros((), np.float32)},
        {"scale": np.zeros(6, np.float32)},
        {"scale": np.full(6, np.nan, np.float32)},
        {"scale": np.ones(5, np.float32)},
        {"weights": np.zeros(12, np.float32)},
        {"weights": np.full((2, 6), np.nan, np.float32)},
        {"weights": np.zeros((1, 6), np.float32)},
        {"sharpness": float("nan")},
    ],
    ids="-".join,
)
def test_heads_whose_outputs_would_be_no_numbers_are_refused(tmp_path: Path, poison: dict[str, Any]) -> None:
    """Whoever can write a folder can write its hashes, too."""
    card = artefact.write(tmp_path / "m", some_heads(), about(), NOW)
    packed = artefact._packed(replace(some_heads(), **poison))
    hashed = card.model_copy(update={"files": {artefact.HEADS: hashlib.sha256(packed).hexdigest()}})
    hashed = hashed.model_copy(update={"id": artefact.content_id(hashed)})
    (tmp_path / "m" / artefact.HEADS).write_bytes(packed)
    (tmp_path / "m" / artefact.CARD).write_text(hashed.model_dump_json(by_alias=True))
    with pytest.raises(UnusableModel, match="does not fit its card"):
        artefact.read(tmp_path / "m")


def test_a_feature_that_never_varied_has_an_infinite_scale(tmp_path: Path) -> None:
    artefact.write(tmp_path / "m", replace(some_heads(), scale=np.full(6, np.inf, np.float32)), about(), NOW)
    assert np.isinf(artefact.read(tmp_path / "m").heads.scale).all()


def test_a_pipe_in_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    artefact.write(tmp_path / "m", some_heads(), about(), NOW)
    (tmp_path / "m" / artefact.HEADS).unlink()
    os.mkfifo(tmp_path / "m" / artefact.HEADS)
    with pytest.raises(UnusableModel, match="missing or unreadable"):
        artefact.read(tmp_path / "m")


def test_a_note_on_the_data_changes_the_id_and_no_file(tmp_path: Path) -> None:
    noted = about()["data"].model_copy(update={"notes": ("3 stored rows of other versions left out",)})
    plain = artefact.write(tmp_path / "plain", some_heads(), about(), NOW)
    other = artefact.write(tmp_path / "noted", some_heads(), about(data=noted), NOW)
    assert other.files == plain.files
    assert other.id != plain.id
