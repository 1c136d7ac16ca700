"""From a file to a calibration: every form of rows, joined labels, and clear words for what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from reward_server.errors import InvalidRequest
from reward_server.fitting.calibration.calibration_fit import JudgedPairs, LabelledRows
from reward_server.fitting.calibration.read import read
from reward_server.fitting.calibration.run import calibrate, owner_of
from reward_server.reward_models.calibration import load

VERSION = "sv_0123456789ab"
Write = Callable[..., Path]


def result(row: int, reward: float | None = 0.5, **fields: Any) -> dict[str, Any]:
    """A line of `labs evaluate`."""
    outcome = {"status": "error", "code": "bad_row"} if reward is None else {"status": "success", "reward": reward}
    return {"key": f"k{row}", "row": row, **outcome, "scoring_version": VERSION, **fields}


def test_rows_with_labels_are_read(rows: Write) -> None:
    found = read(rows({"reward": 0.2, "label": 1}, {"reward": "0.4", "label": 3, "group": "g"}), scale=(1, 5))
    assert isinstance(found.data, LabelledRows)
    assert found.data.rewards["reward"].tolist() == [0.2, 0.4]
    assert found.data.labels is not None
    assert found.data.labels.tolist() == [0.0, 0.5]
    assert found.data.groups == ("row 1", "g")
    assert found.owner is None


def test_several_rewards_keep_their_names(rows: Write) -> None:
    found = read(rows({"rewards": {"b": 1, "a": 2}}, {"rewards": {"a": 3, "b": 4}}))
    assert isinstance(found.data, LabelledRows)
    assert {name: values.tolist() for name, values in found.data.rewards.items()} == {"a": [2, 3], "b": [1, 4]}
    assert found.data.labels is None


def test_pairs_are_read(rows: Write) -> None:
    lines = [{"reward_a": 0.1, "reward_b": 0.3, "winner": winner, "dialogue": 7} for winner in ("a", "b", "tie")]
    found = read(rows(*lines))
    assert isinstance(found.data, JudgedPairs)
    assert found.data.outcomes.tolist() == [1.0, 0.0, 0.5]
    assert found.data.second["reward"].tolist() == [0.3] * 3
    assert found.data.groups == ("7",) * 3


def test_results_are_joined_with_labels_by_what_both_have(rows: Write, tmp_path: Path) -> None:
    rows(result(1, 0.1), result(2, None), result(3, 0.3, id="c"), result(4, 0.4), name="results.jsonl")
    labels = rows({"id": "c", "label": 0}, {"row": 1, "label": 1}, {"key": "k9", "label": 1}, name="labels.jsonl")
    found = read(tmp_path, labels)
    assert isinstance(found.data, LabelledRows)
    assert found.data.labels is not None
    assert list(zip(found.data.rewards["reward"], found.data.labels, strict=True)) == [(0.1, 1.0), (0.3, 0.0)]
    assert (found.owner, found.left_out) == (VERSION, 2)


def test_chosen_and_rejected_answers_are_pairs(rows: Write) -> None:
    path = rows(
        result(1, 0.9, part="chosen"), result(1, 0.2, part="rejected"), result(2, 0.5, part="chosen"),
        result(2, None, part="rejected"),
    )  # fmt: skip
    found = read(path)
    assert isinstance(found.data, JudgedPairs)
    assert (found.data.first["reward"].tolist(), found.data.outcomes.tolist()) == ([0.9], [1.0])
    assert found.left_out == 2


def test_of_pairs_by_themselves_either_side_wins(rows: Write) -> None:
    """With all winners on one side there would be one class, and their error would say nothing."""
    lines = [result(n, r, part=part) for n in range(3) for part, r in (("chosen", 0.9), ("rejected", 0.2))]
    found = read(rows(*lines)).data
    assert isinstance(found, JudgedPairs)
    assert found.outcomes.tolist() == [1.0, 0.0, 1.0]
    assert (found.first["reward"].tolist(), found.second["reward"].tolist()) == ([0.9, 0.2, 0.9], [0.2, 0.9, 0.2])


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([{"label": 1}], "row 1: there is no reward"),
        ([{"reward": 0.5, "label": 1}, {"reward": 0.5}], "1 of 2 rows have no label"),
        ([{"reward": "high"}], "reward is not a number"),
        ([{"reward": float("nan")}], "reward is not a number"),
        ([{"reward": True}, {"reward": None}], "row 2: reward is not a number"),
        ([{"reward": 0.5, "label": 7}], "does not lie between 0 and 1"),
        ([{"reward_a": 0.5, "reward_b": 0.1, "winner": "first"}], "winner must be a, b or tie"),
        ([{"reward": 0.5}, {"reward_a": 0.5, "reward_b": 0.1, "winner": "a"}], "mixes rows and pairs"),
        ([{"rewards": {"a": 1}}, {"rewards": {"b": 1}}], "name different rewards"),
        ([{"reward": 0.5, "scoring_version": "sv_1"}, {"reward": 0.5, "scoring_version": "sv_2"}], "sv_1, sv_2"),
        ([5], "row 1: not an object"),
        ([result(1, None)], "nothing that was scored"),
        ([], "has no rows"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(rows: Write, lines: list[Any], said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        read(rows(*lines))


def test_labels_that_cannot_be_joined_are_refused(rows: Write, tmp_path: Path) -> None:
    results = rows(result(1), name="results.jsonl")
    for labels, said in (
        ([{"label": 1}], "needs a label and one of"),
        ([{"row": 1, "label": 1}, {"row": 1, "label": 0}], "a second label"),
        ([{"row": 9, "label": 1}], "share no key, id or row"),
    ):
        with pytest.raises(InvalidRequest, match=said):
            read(results, rows(*labels, name="labels.jsonl"))
    with pytest.raises(InvalidRequest, match="hold their labels"):
        read(rows({"reward": 1}), tmp_path / "labels.jsonl")
    with pytest.raises(InvalidRequest, match="There is no"):
        read(tmp_path / "nothing.jsonl")
    with pytest.raises(InvalidRequest, match="lower than"):
        read(results, scale=(5, 1))


def test_the_owner_is_said_by_rows_or_caller_and_not_by_both_differently(rows: Write) -> None:
    of_version, silent = read(rows(result(1))), read(rows({"reward": 1}))
    assert owner_of(of_version, None) == owner_of(silent, VERSION) == VERSION
    assert owner_of(of_version, "rm_0123456789ab") == "rm_0123456789ab"
    for found, given, said in (
        (silent, None, "do not say"),
        (silent, "latest", "--for must be"),
        (of_version, "sv_ba9876543210", "not of"),
        (read(rows({"reward": 1, "scoring_version": "v1"})), None, "malformed"),
    ):
        with pytest.raises(InvalidRequest, match=said):
            owner_of(found, given)


@pytest.mark.parametrize("method", ["isotonic", "percentile"])
def test_a_calibration_is_kept_with_its_diagram(rows: Write, tmp_path: Path, method: str) -> None:
    generator = np.random.default_rng(0)
    rewards = generator.random(200)
    lines = [{"reward": r, "label": int(generator.random() < r)} for r in rewards.tolist()]
    kept = calibrate(read(rows(*lines)), method, VERSION, datetime(2026, 1, 1, tzinfo=UTC), tmp_path / "out")
    assert load(kept.path) == kept.calibration
    assert kept.diagram.read_bytes().startswith(b"\x89PNG")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [kept.path.name, kept.diagram.name]
    assert json.loads(kept.path.read_text())["belongs_to"] == VERSION


def test_points_on_the_frame_of_the_diagram_are_drawn_whole(
    rows: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: figures.append(figure))
    path = rows(*({"reward": k / 299, "label": int(k >= 150)} for k in range(300)))
    calibrate(read(path), "isotonic", VERSION, datetime(2026, 1, 1, tzinfo=UTC), tmp_path / "out")
    marked = [line for axes in figures[0].axes for line in axes.lines if line.get_marker() == "o"]
    assert {0.0, 1.0} <= {float(y) for line in marked for y in line.get_ydata()}
    assert [line.get_clip_on() for line in marked] == [False, False]
