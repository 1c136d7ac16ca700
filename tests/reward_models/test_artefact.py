"""A model on disk: whole or not at all, verified, and named after its content."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reward_server.errors import InvalidRequest
from reward_server.reward_models import artefact
from reward_server.reward_models.artefact import DataCard, UnusableModel
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
