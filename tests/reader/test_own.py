"""The reader's calibration of a lab's own collection."""

from __future__ import annotations

import json
import math
import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from personas.case.calibration import PlattScaling, ReaderCalibration
from personas.reading.reader import LocalReader
from reward_server.cli.main import app
from reward_server.fitting.reader.dataset import ReaderRow
from reward_server.fitting.reader.evaluate import TurnPrediction
from reward_server.fitting.reader.own import OwnFit, chance_of, fit_own, gain_of, platt
from reward_server.reader.build import local_reader
from scenarios.calibration import CALIBRATION_FILE
from scenarios.library import COLLECTIONS, load_library
from scenarios.practice import PracticeCase, load_practice
from scenarios.turns import BACKGROUND_KIND, LabelledTurn
from scenarios.yamlfile import ScenarioFileError

SCENARIO = "half-a-cup"


@pytest.fixture(scope="module")
def reader() -> LocalReader:
    return local_reader()


@pytest.fixture(scope="module")
def case() -> PracticeCase:
    return next(case for case in load_practice() if case.held_out)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder with one collection of one scenario and some of its labelled turns."""
    folder = tmp_path / "tutoring"
    folder.mkdir()
    source = COLLECTIONS / "tutoring"
    for path in (*source.glob(f"{SCENARIO}.*"), *source.glob("collection*")):
        if not path.name.endswith(".variants.yaml"):
            shutil.copy(path, folder)
    return tmp_path


def logit(p: float) -> float:
    return math.log(p / (1 - p))


def test_a_map_of_log_odds_is_found_again() -> None:
    draw = random.Random(1)
    meant = PlattScaling(0.6, 1.5)
    told = [draw.uniform(0.01, 0.99) for _ in range(6000)]
    found = platt([(p, draw.random() < meant.of(p)) for p in told])
    assert found.scale == pytest.approx(0.6, abs=0.08)
    assert found.shift == pytest.approx(1.5, abs=0.12)


def test_few_labels_hardly_move_it_and_none_not_at_all() -> None:
    assert platt([]) == PlattScaling()
    few = platt([(0.1, True), (0.2, False)])
    assert few.scale == pytest.approx(1, abs=0.1)
    assert abs(few.shift) < 0.7


def test_the_map_keeps_the_order_and_the_ends() -> None:
    scaling = PlattScaling(0.5, 1.0)
    mapped = [scaling.of(p / 100) for p in range(101)]
    assert mapped == sorted(mapped)
    assert 0 <= mapped[0] < mapped[-1] <= 1
    assert scaling.of(0.5) == pytest.approx(1 / (1 + math.exp(-1)), abs=1e-4)


def test_a_case_is_read_with_its_own_calibration_and_not_with_that_of_another_reader(
    reader: LocalReader, case: PracticeCase
) -> None:
    turns = [(case.case.openings[0], turn.turn) for turn in case.turns if turn.kind == "specific"]
    plain = case.compiled()
    surer = ReaderCalibration(reader.digest, PlattScaling(1.0, 2.0), PlattScaling())
    other = replace(surer, reader="0" * 12)
    read = [reader.read(replace(plain, calibration=each), turns) for each in (None, surer, other)]
    before, after, same = ([c.confidence for r in some for s in r.sentences for c in s.topics] for some in read)
    assert before
    assert before == same
    assert [logit(b) - logit(a) for a, b in zip(before, after, strict=True) if 0.01 < a < 0.9] == pytest.approx(
        [2.0] * sum(0.01 < a < 0.9 for a in before), abs=0.02
    )


def test_every_turn_is_measured_before_and_after(reader: LocalReader, case: PracticeCase) -> None:
    rows = [ReaderRow(*case.key, turn) for turn in case.turns if turn.kind != BACKGROUND_KIND]
    fit = fit_own(reader, rows, {case.key: case.compiled()})
    assert fit.turns == len(rows) == len(fit.before) == len(fit.after)
    assert fit.calibration.reader == reader.digest
    assert fit.calibration != ReaderCalibration(reader.digest)


def test_too_few_turns_are_said(reader: LocalReader, case: PracticeCase) -> None:
    with pytest.raises(ValueError, match="at least 20"):
        fit_own(reader, [ReaderRow(*case.key, case.turns[0])], {case.key: case.compiled()})


def test_wrong_answers_count_against_right_ones() -> None:
    def heard(kind: str, labels: tuple[str, ...], *asks: str, commits: tuple[str, ...] = ()) -> TurnPrediction:
        row = ReaderRow("a", "b", LabelledTurn("x", labels, (), kind))
        return TurnPrediction(row, asks, commits, off_topic=False, acts=())

    assert gain_of([heard("specific", ("a",), "a")]) == 1
    assert gain_of([heard("double", ("a", "b"), "a", "b")]) == 2
    assert gain_of([heard("specific", ("a",), "b")]) == -1
    assert gain_of([heard("foreign", (), "b")]) == -1
    assert gain_of([heard("near_commit", (), commits=("c",))]) == -1
    none = heard("specific", ("a",))
    assert not OwnFit(ReaderCalibration("0" * 12), 1, (none,), (none,)).helps


def fit_of(better: int, worse: int) -> OwnFit:
    """A fit that understands so many turns that were not, and no longer so many that were."""
    row = ReaderRow("a", "b", LabelledTurn("x", ("a",), (), "specific"))
    none, right = (TurnPrediction(row, asks, (), off_topic=False, acts=()) for asks in ((), ("a",)))
    before = (*[none] * better, *[right] * worse, *[right] * 20)
    after = (*[right] * better, *[none] * worse, *[right] * 20)
    return OwnFit(ReaderCalibration("0" * 12), len(before), before, after)


def test_a_gain_that_chance_would_give_is_none() -> None:
    assert not fit_of(1, 0).helps
    assert not fit_of(4, 0).helps
    assert fit_of(5, 0).helps
    assert not fit_of(15, 10).helps
    assert fit_of(20, 6).helps
    assert chance_of([1] * 4) == pytest.approx(1 / 16)
    assert chance_of([]) == 1
    many = [1] * 120 + [-1] * 96 + [2] * 4
    assert chance_of(many) < 0.05 < chance_of([1] * 105 + [-1] * 96)


def test_it_is_said_why_a_calibration_is_refused() -> None:
    assert fit_of(3, 2).verdict == (
        "better on 3 turns, worse on 2: no more than chance; label more turns, 200 make the figures reliable"
    )
    assert fit_of(1, 2).verdict == "better on 1 turn, worse on 2: no better than without"
    assert fit_of(9, 0).verdict == "better on 9 turns, worse on 0: more than chance"


def test_a_calibration_belongs_to_its_collection_and_its_version(own: Path) -> None:
    before = load_library(own)
    entry = {"scale": 1.0, "shift": 0.5}
    file = {"schema": "labs.reader/1", "reader": "0123456789ab", "turns": 40, "topic": entry, "commitment": entry}
    (own / "tutoring" / CALIBRATION_FILE).write_text(json.dumps(file))
    after = load_library(own)
    assert after.digest != before.digest
    assert after.vault.open("tutoring", SCENARIO).case.calibration == ReaderCalibration(
        "0123456789ab", PlattScaling(1.0, 0.5), PlattScaling(1.0, 0.5)
    )
    assert before.vault.open("tutoring", SCENARIO).case.calibration is None


def test_a_broken_calibration_is_named(own: Path) -> None:
    (own / "tutoring" / CALIBRATION_FILE).write_text('{"reader": "x", "turns": 0}')
    with pytest.raises(ScenarioFileError, match=r"reader\.json"):
        load_library(own)


@pytest.mark.slow
def test_the_command_writes_what_helps_and_refuses_the_rest(own: Path) -> None:
    turns = own / "tutoring" / f"{SCENARIO}.turns.jsonl"
    turns.write_text("".join(turns.read_text().splitlines(keepends=True)[:60]))
    said = CliRunner().invoke(app, ["reader", "train", "--scenarios", str(own)])
    assert said.exit_code == 0, said.output
    assert "specific understood" in said.output
    path = own / "tutoring" / CALIBRATION_FILE
    assert path.exists() == ("nothing was written" not in said.output)
    forced = CliRunner().invoke(app, ["reader", "train", "--scenarios", str(own), "--force"])
    assert forced.exit_code == 0, forced.output
    assert path.exists()
    assert load_library(own).vault.open("tutoring", SCENARIO).case.calibration is not None


def test_the_command_says_what_it_needs(own: Path, tmp_path: Path) -> None:
    assert CliRunner().invoke(app, ["reader", "train"]).exit_code != 0
    (own / "tutoring" / f"{SCENARIO}.turns.jsonl").unlink()
    assert CliRunner().invoke(app, ["reader", "train", "--scenarios", str(own)]).exit_code != 0
