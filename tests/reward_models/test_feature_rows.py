"""Rows on disk: the same numbers as a matrix, and never all of them in memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from errno import ENOSPC
from pathlib import Path
from typing import IO, Literal

import numpy as np
import pytest

from reward_server.errors import Unavailable
from reward_server.fitting.reward_model import head_training as training
from reward_server.fitting.reward_model import metrics
from reward_server.fitting.reward_model.head_training import Recipe
from reward_server.fitting.reward_model.train import FeatureTools, TrainingTask, train
from reward_server.reward_models import feature_rows, model
from reward_server.reward_models.conversation import Conversation
from reward_server.reward_models.dataset import Dataset
from reward_server.reward_models.feature_rows import (
    Matrix,
    RowFile,
    SelectedRows,
    blanked,
    blocks,
    held,
    joined,
    picked,
)
from reward_server.reward_models.feature_shelf import FeatureShelf
from reward_server.reward_models.heads import Heads
from reward_server.reward_models.matrices import ExampleMatrices, scaled
from reward_server.reward_models.model import RewardModel
from reward_server.reward_models.plain_features import PlainFeatures
from reward_server.reward_models.scatter import Scatter
from reward_server.reward_models.uncertainty import laplace_at, laplace_of_many
from tests.reward_models.letters import LetterEncoder
from tests.reward_models.talks import WordCounts, labelled_talks, preferred_talks

SOURCE = np.random.default_rng(0)
QUICK = Recipe(epochs=4, l2=(0.1, 0.3))
ROWS: Matrix = SOURCE.normal(size=(50, 6)).astype(np.float32)


@pytest.fixture
def nothing_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every matrix were too large for memory."""
    monkeypatch.setattr(feature_rows, "IN_MEMORY", -1)


@pytest.fixture
def file(tmp_path: Path) -> RowFile:
    found = RowFile(6, tmp_path)
    for block in blocks(ROWS, 7):
        found.append(block)
    return found


def test_a_file_gives_the_rows_that_were_written(file: RowFile, tmp_path: Path) -> None:
    assert file.shape == (50, 6)
    assert (file[:] == ROWS).all()
    assert (file[3:11:2] == ROWS[3:11:2]).all()
    for places in ([], [4], [7, 8, 9, 2, 2, 49, 0]):
        wanted = np.array(places, dtype=np.intp)
        assert (file[wanted] == ROWS[wanted]).all()
        assert file[wanted].shape == (len(places), 6)
    with pytest.raises(IndexError):
        file[np.array([50])]
    assert not list(tmp_path.iterdir())  # it has no name, so nothing is left of it


def test_rows_of_another_width_are_refused(file: RowFile) -> None:
    with pytest.raises(ValueError, match="width 6"):
        file.append(np.zeros((2, 5), dtype=np.float32))


def test_a_full_disk_is_no_fault_of_the_rows_and_leaves_none_out_of_place(file: RowFile) -> None:
    class Full:
        def __init__(self, inner: IO[bytes]) -> None:
            self.inner = inner

        def seek(self, place: int, whence: int = 0) -> None:
            self.inner.seek(place, whence)

        def write(self, written: bytes) -> None:
            self.inner.write(written[:5])
            raise OSError(ENOSPC, "No space left on device")

    inner, file._file = file._file, Full(file._file)  # type: ignore[assignment]
    with pytest.raises(Unavailable, match="No space left"):
        file.append(ROWS)
    file._file = inner
    assert file.append(ROWS[:2]) == range(50, 52)
    assert (file[50:] == ROWS[:2]).all()


def test_a_folder_that_cannot_be_written_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    found = RowFile(6, tmp_path / "taken" / "rows")
    found.append(ROWS)
    assert (found[:] == ROWS).all()


@pytest.mark.usefixtures("nothing_fits")
def test_views_of_a_file_are_those_of_a_matrix(file: RowFile) -> None:
    places = np.array([9, 1, 30, 31, 1])
    columns = np.array([False, True, False, False, True, False])
    some = picked(file, places)
    assert isinstance(some, SelectedRows)
    assert (some[1:4] == ROWS[places][1:4]).all()
    without = blanked(some, columns)
    assert (without[:] == np.where(columns, 0.0, ROWS[places])).all()
    both = joined(without, file)
    assert both.shape == (55, 6)
    wanted = np.array([54, 0, 5, 4])
    assert (both[wanted] == np.concatenate([without[:], ROWS])[wanted]).all()
    centre, scale = ROWS.mean(0).astype(np.float64), ROWS.std(0).astype(np.float64)
    assert (scaled(file, centre, scale)[:] == scaled(ROWS, centre, scale)[:]).all()


def test_few_rows_become_a_matrix(file: RowFile, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(held(file), np.ndarray)
    monkeypatch.setattr(feature_rows, "IN_MEMORY", ROWS.nbytes - 1)
    assert held(file) is file


# --- directions of many rows ----------------------------------------------------------------------


def test_the_strongest_directions_are_those_of_the_whole() -> None:
    rows = SOURCE.normal(size=(300, 12)) * np.linspace(0.0, 3.0, 12)  # one column never varies
    varies = rows.any(axis=0)
    scatter = Scatter(varies)
    for start in range(0, 300, 70):
        scatter.add(rows[start : start + 70])
    directions, strengths = scatter.strongest(4)
    _, singular, basis = np.linalg.svd(rows, full_matrices=False)
    assert np.allclose(strengths[::-1], singular[:4] ** 2)
    assert np.allclose(np.abs(np.einsum("ij,ij->i", directions[::-1], basis[:4])), 1.0)
    assert not directions[:, 0].any()
    for columns in (varies, np.ones(12, dtype=np.bool_)):
        scatter = Scatter(columns)
        scatter.add(rows)
        assert len(scatter.strongest(50)[1]) == 11
    assert Scatter(np.zeros(12, dtype=np.bool_)).strongest(3)[0].shape == (0, 12)


def test_doubt_of_many_pairs_is_that_of_few() -> None:
    rows = SOURCE.normal(size=(200, 5))
    head = SOURCE.normal(size=5)
    every = np.ones(5, dtype=np.bool_)
    one = laplace_at(head, rows, 0.7)
    other = laplace_of_many(head, (rows[start : start + 64].copy() for start in range(0, 200, 64)), 0.7, 256, every)
    asked = SOURCE.normal(size=(20, 5))
    assert np.allclose(one.predict(asked).epistemic_std, other.predict(asked).epistemic_std)
    fewer = laplace_of_many(head, [rows], 0.7, 3, every)
    assert (fewer.predict(asked).epistemic_std > one.predict(asked).epistemic_std - 1e-12).all()


# --- a whole training -----------------------------------------------------------------------------


def trained(
    folder: Path, dataset: Dataset, featuriser: WordCounts | None = None, recipe: Recipe = QUICK
) -> tuple[dict[str, str], RewardModel]:
    plain = PlainFeatures(LetterEncoder())
    tools = FeatureTools(featuriser or WordCounts(), plain, "letters/1", FeatureShelf(folder / "cache"))
    task = TrainingTask(
        folder / "model", "letters", datetime(2026, 1, 2, tzinfo=UTC), recipe=recipe, keep_uncertainty=True
    )
    made = train(dataset, task, tools, lambda stage, done, total: None)
    return dict(made.card.files), made.attempt.model


DATA = replace(labelled_talks(), preferred=preferred_talks().preferred)


@pytest.mark.parametrize("dataset", [DATA, preferred_talks()], ids=["labels and pairs", "pairs"])
@pytest.mark.slow
def test_a_training_from_disk_makes_the_same_model(
    tmp_path: Path, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "RESAMPLES", 20)
    usual, before = trained(tmp_path / "usual", dataset)
    monkeypatch.setattr(feature_rows, "IN_MEMORY", -1)
    assert trained(tmp_path / "disk", dataset)[0] == usual
    monkeypatch.setattr(model, "FEW_ROWS", 10)
    many, after = trained(tmp_path / "many", dataset)
    assert {name: each for name, each in many.items() if name != model.UNCERTAINTY} == {
        name: each for name, each in usual.items() if name != model.UNCERTAINTY
    }
    rows = WordCounts().features(list(dataset.conversations())[:30])
    first, second = (found.predict(rows).epistemic for found in (before, after))
    assert first is not None
    assert second is not None
    assert np.allclose(first, second, rtol=1e-3)


class Wide(WordCounts):
    """Word counts before many other columns."""

    width = 1000

    def features(self, conversations: Sequence[Conversation]) -> Matrix:
        rows = np.zeros((len(conversations), self.width), dtype=np.float32)
        counts = WordCounts().features(conversations)
        rows[:, : counts.shape[1]] = counts
        return rows


FEW, MANY = 1000, 2000


def largest_memory(folder: Path, pairs: int) -> int:
    dataset = preferred_talks(pairs, groups=50)
    tracemalloc.start()
    try:
        trained(folder, dataset, Wide(), Recipe(epochs=1, l2=(0.1,)))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("link", ["identity", "preference"])
def test_the_doubt_of_many_wide_rows_takes_a_few_of_them_at_a_time(
    link: Literal["identity", "preference"], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a training takes most memory, 512 rows in double precision are too many."""
    monkeypatch.setattr(model, "FEW_ROWS", 100)
    width, count = 4000, 600
    rows = SOURCE.normal(size=(count, width)).astype(np.float32)
    scale = np.full(width, np.inf, dtype=np.float32)
    scale[:10] = 1.0
    weights, bias = np.zeros((1, width), dtype=np.float32), np.zeros(1, dtype=np.float32)
    heads = Heads(("score",), np.zeros(width, dtype=np.float32), scale, weights, bias, link=link)
    labels, ones = SOURCE.uniform(size=(count, 1)).astype(np.float32), np.ones(count, dtype=np.float32)
    nothing = rows[:0]
    if link == "identity":
        examples = ExampleMatrices(rows, labels, nothing, nothing, ones[:0], ones[:0])
    else:
        examples = ExampleMatrices(nothing, labels[:0], rows, rows[::-1], ones, ones)
    few = replace(examples, features=examples.features[:10], labels=examples.labels[:10])
    tracemalloc.start()
    try:
        assert model.with_uncertainty(heads, examples, few, 1.0).posterior is not None
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * model.ROWS_AT_ONCE * width * 8 * 2 + model.MAX_DIRECTIONS * width * 8


@pytest.mark.slow
def test_more_rows_take_no_more_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What further rows add is less than half of their vectors; rows in memory add three times as much as these."""
    monkeypatch.setattr(metrics, "RESAMPLES", 5)
    monkeypatch.setattr(feature_rows, "IN_MEMORY", 500_000)
    monkeypatch.setattr(model, "FEW_ROWS", 100)
    monkeypatch.setattr(training, "ROWS_AT_ONCE", 64)
    trained(tmp_path / "first", preferred_talks(100))  # modules that are loaded on the way are memory, too
    few, many = (largest_memory(tmp_path / str(pairs), pairs) for pairs in (FEW, MANY))
    vectors = 2 * (MANY - FEW) * Wide.width * 4
    assert many - few < vectors / 2
