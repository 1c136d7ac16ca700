"""`labs calibrate`: from a file or the store to an artefact, and one line for a wrong call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from reward_server.cli import calibrate as command
from reward_server.cli import fitting
from reward_server.cli.calibrate import calibrate
from reward_server.errors import InvalidRequest
from reward_server.judges.plugins import NO_PLUGINS
from reward_server.reward_models.calibration import load
from reward_server.scoring.version import rubric_version
from reward_server.server import engine
from reward_server.server.engine import present_version
from reward_server.settings import Settings
from reward_server.store.migrate import migrate
from reward_server.store.store import Store
from tests.jobs.test_agreement import Longer
from tests.store.builders import an_evaluation

VERSION = "sv_0123456789ab"
pytestmark = [pytest.mark.usefixtures("shared_encoder"), pytest.mark.slow]
EARLIER = datetime(2020, 1, 1, tzinfo=UTC)


def run(tmp_path: Path, *arguments: str) -> str:
    app = typer.Typer()
    app.command()(calibrate)
    result = CliRunner().invoke(app, [*arguments, "--data", str(tmp_path)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


@pytest.fixture
def labelled(tmp_path: Path) -> str:
    generator = np.random.default_rng(0)
    path = tmp_path / "rows.jsonl"
    rows = [
        {"rewards": {"rubric": a, "model": b}, "label": int(generator.random() < a**2)}
        for a, b in generator.random((300, 2)).tolist()
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_names_that_no_judge_has_are_told_apart(tmp_path: Path, labelled: str) -> None:
    def said() -> str:
        return " ".join(run(tmp_path, labelled, "--method", "min_max", "--for", VERSION).split())

    assert "only if it has a plug-in called model cal_" in said()
    Path(labelled).write_text(Path(labelled).read_text().replace('"model"', '"reward_model"'))
    assert "plug-in" not in said()


def test_errors_before_and_after_are_printed_and_the_server_finds_the_artefact(tmp_path: Path, labelled: str) -> None:
    labels_free = run(tmp_path, labelled, "--method", "min_max", "--for", VERSION)
    assert "rescales rewards; it is not a calibration" in labels_free
    rows = [json.loads(line) for line in Path(labelled).read_text().splitlines()]
    for row in rows:
        row["rewards"]["model"] = 1 - row["label"]
    Path(labelled).write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InvalidRequest, match="'model' does not rise"):
        run(tmp_path, labelled, "--method", "isotonic", "--for", VERSION)
    [path] = (tmp_path / "calibrations").glob("*.json")
    assert load(path).method == "min_max"


@pytest.mark.parametrize("method", ["z_score", "min_max", "percentile"])
def test_rescaling_prints_where_rewards_lie_before_and_after(tmp_path: Path, method: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({"reward": k / 1000}) + "\n" for k in range(201)))
    output = run(tmp_path, str(path), "--method", method, "--for", VERSION)
    assert "ECE" not in output
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in output.splitlines() if "│" in line]
    before, after = rows
    assert before == ["reward", "before", "0.100", "0.058", "0.010", "0.100", "0.190"]
    assert (
        after
        == {
            "z_score": ["", "after", "0.000", "1.000", "-1.551", "0.000", "1.551"],
            "min_max": ["", "after", "0.500", "0.290", "0.050", "0.500", "0.950"],
            "percentile": ["", "after", "0.500", "0.289", "0.052", "0.500", "0.948"],
        }[method]
    )


def test_a_version_that_the_server_does_not_have_is_told_with_the_present_one(tmp_path: Path, labelled: str) -> None:
    present = asyncio.run(present_version(Settings(data=tmp_path)))
    output = run(tmp_path, labelled, "--method", "min_max", "--for", VERSION)
    refused = f"warning: the server of {tmp_path} will reject it (409): This calibration was fitted for"
    assert f"{refused} {VERSION}, and rewards are now made by {present}" in output
    assert "warning" not in run(tmp_path, labelled, "--method", "min_max", "--for", present)
    rows = "".join(json.dumps({"reward": n / 40}) + "\n" for n in range(40))
    (tmp_path / "plain.jsonl").write_text(rows)
    model = run(tmp_path, str(tmp_path / "plain.jsonl"), "--method", "min_max", "--for", "rm_0123456789ab")
    assert f"{refused} the reward model rm_0123456789ab, and no reward model is active" in model
    (tmp_path / "reward-models").mkdir()
    (tmp_path / "reward-models" / "active.json").write_text("damaged")
    model = run(tmp_path, str(tmp_path / "plain.jsonl"), "--method", "min_max", "--for", "rm_0123456789ab")
    assert f"cannot check whether it matches the server of {tmp_path}" in model


def test_rewards_of_several_judges_need_all_digits_of_the_version(
    tmp_path: Path, labelled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As docs/calibration.md says: the rubric's own stay good whatever else is heard, several do not."""
    plugins = replace(NO_PLUGINS, conversation={"model": Longer()})
    monkeypatch.setattr(engine, "load_plugins", lambda names: plugins)
    present = asyncio.run(present_version(Settings(data=tmp_path)))
    short, longer = rubric_version(present), present
    assert short != longer

    def warned(rows: str, owner: str) -> bool:
        return "warning: the server" in run(tmp_path, rows, "--method", "min_max", "--for", owner)

    assert warned(labelled, short)
    assert not warned(labelled, longer)
    alone = tmp_path / "alone.jsonl"
    alone.write_text("".join(json.dumps({"rewards": {"rubric": n / 40}}) + "\n" for n in range(40)))
    assert not warned(str(alone), short)


def test_a_calibration_is_taken_away_with_its_diagram(tmp_path: Path, labelled: str) -> None:
    run(tmp_path, labelled, "--method", "min_max", "--for", VERSION)
    [path] = (tmp_path / "calibrations").glob("*.json")
    with pytest.raises(InvalidRequest, match=f"no calibration cal_0123456789ab in .*: {path.stem}"):
        run(tmp_path, "--remove", "cal_0123456789ab")
    with pytest.raises(InvalidRequest, match="no calibration"):
        run(tmp_path, "--remove", f"../calibrations/{path.stem}")
    with pytest.raises(InvalidRequest, match="--remove can be combined"):
        run(tmp_path, labelled, "--remove", path.stem)
    assert f"{path.stem} was deleted" in run(tmp_path, "--remove", path.stem)
    assert list((tmp_path / "calibrations").iterdir()) == []
    assert "give --method, one of temperature" in run(tmp_path, labelled)


def test_no_table_has_a_dash_for_a_number(tmp_path: Path, labelled: str) -> None:
    rows = [json.loads(line) for line in Path(labelled).read_text().splitlines()]
    for row in rows:
        row["rewards"] = {name: 3 * value for name, value in row["rewards"].items()}
    Path(labelled).write_text("".join(json.dumps(row) + "\n" for row in rows))
    output = run(tmp_path, labelled, "--method", "isotonic", "--for", VERSION, "--combine")
    assert "not in [0, 1]" in output
    assert not any(cell.strip() == "-" for line in output.splitlines() for cell in line.split("│"))


def test_a_joint_combination_is_printed(tmp_path: Path, labelled: str) -> None:
    output = run(
        tmp_path, labelled, "--method", "isotonic", "--for", VERSION, "--combine", "--out", str(tmp_path / "o")
    )
    assert "ECE before" in output
    [path] = (tmp_path / "o").glob("*.json")
    calibration = load(path)
    assert calibration.id in output
    assert calibration.combination is not None
    assert calibration.combination.weights["rubric"] > 0.5


def test_the_rewards_of_the_store_are_rescaled_for_the_newest_version(tmp_path: Path) -> None:
    async def fill() -> None:
        url = f"sqlite:///{tmp_path / 'labs.sqlite'}"
        await migrate(url)
        store = await Store.open(url)
        rewards = np.random.default_rng(0).random(80).round(4).tolist()
        rows = [an_evaluation(reward=reward, lab_id=f"lab{n % 2}") for n, reward in enumerate(rewards)]
        weighted = [an_evaluation(reward=0.0, reward_config={"skip_safety_gate": True})]
        async with store.transaction() as unit:
            await unit.evaluations.add_many([*rows, *weighted])
        await store.close()

    asyncio.run(fill())
    with pytest.raises(InvalidRequest, match=r"several labs .* --lab or --all-labs: lab\d \(40\), lab\d \(40\)"):
        run(tmp_path, "--from-store", "--method", "z_score")
    output = run(tmp_path, "--from-store", "--all-labs", "--method", "z_score")
    assert f"z_score on 80 rows for {VERSION}" in output
    assert "min_max on 40 rows" in run(tmp_path, "--from-store", "--lab", "lab1", "--method", "min_max")
    with pytest.raises(InvalidRequest, match="no plain rewards in the store; --lab takes one of these: lab"):
        run(tmp_path, "--from-store", "--lab", "nobody", "--method", "z_score")
    with pytest.raises(InvalidRequest, match=rf"no plain rewards of sv_ba9876543210; --for .*{VERSION} \(80\)"):
        run(tmp_path, "--from-store", "--all-labs", "--method", "z_score", "--for", "sv_ba9876543210")
    with pytest.raises(InvalidRequest, match="needs a label"):
        run(tmp_path, "--from-store", "--all-labs", "--method", "isotonic")


def test_of_several_versions_in_the_store_the_choice_is_named(tmp_path: Path) -> None:
    older = "sv_ba9876543210"

    async def fill() -> None:
        url = f"sqlite:///{tmp_path / 'labs.sqlite'}"
        await migrate(url)
        store = await Store.open(url)
        rewards = np.random.default_rng(0).random(40).round(4).tolist()
        rows = [an_evaluation(reward=reward) for reward in rewards]
        rows += [replace(row, reward=row.reward / 2, scoring_version=older, created_at=EARLIER) for row in rows[:35]]
        async with store.transaction() as unit:
            await unit.evaluations.add_many([replace(row, evaluation_id=f"ev_{n}") for n, row in enumerate(rows)])
        await store.close()

    with pytest.raises(InvalidRequest, match="no plain rewards yet"):
        run(tmp_path, "--from-store", "--method", "z_score")
    asyncio.run(fill())
    newest = run(tmp_path, "--from-store", "--method", "z_score")
    assert f"40 rewards of {VERSION}; instead of it --for takes one of these: {older} (35)" in newest
    assert f"z_score on 40 rows for {VERSION}" in newest
    chosen = run(tmp_path, "--from-store", "--method", "z_score", "--for", older)
    assert f"z_score on 35 rows for {older}" in chosen
    assert "the one in --for" in " ".join(run(tmp_path, "--help").replace("│", "").split())


def test_beside_the_plain_reward_other_names_do_not_serve_and_that_is_said(tmp_path: Path, labelled: str) -> None:
    said = "use the map of reward alone, for plain rewards: model and a combination"
    path = Path(labelled)
    path.write_text(path.read_text().replace('"rubric"', '"reward"'))
    assert said in " ".join(run(tmp_path, labelled, "--method", "min_max", "--for", VERSION).split())
    path.write_text(path.read_text().replace('"reward": 0', '"rubric": 0'))
    assert "plain rewards" not in run(tmp_path, labelled, "--method", "min_max", "--for", VERSION)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--method", "magic"], "There is no method 'magic'"),
        (["--method", "z_score"], "either a file or --from-store"),
        (["rows.jsonl", "--from-store", "--method", "z_score"], "either a file or --from-store"),
        (["nowhere.jsonl", "--method", "z_score"], "There is no nowhere.jsonl"),
    ],
)
def test_wrong_calls_are_one_line(tmp_path: Path, arguments: list[str], said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        run(tmp_path, *arguments)


def test_a_folder_without_results_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"holds no results\.jsonl of \./labs evaluate"):
        run(tmp_path, str(tmp_path), "--method", "z_score")


def winners(path: Path, *, named: list[str]) -> str:
    """Pairs whose side `a` leads by more and more, so that the reward is higher for winners."""
    rows = [{"reward_a": 0.2 + n / 200, "reward_b": 0.2, "winner": winner} for n, winner in enumerate(named)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.mark.parametrize(
    ("winner", "said"), [("a", "are a: one class .*; turn the sides"), ("b", "are b: one"), ("tie", "are a tie: one")]
)
def test_winners_of_one_class_are_refused(tmp_path: Path, winner: str, said: str) -> None:
    pairs = winners(tmp_path / "pairs.jsonl", named=[winner] * 60)
    with pytest.raises(InvalidRequest, match=f"All winners {said}"):
        run(tmp_path, pairs, "--method", "temperature", "--for", VERSION)
    assert not (tmp_path / "calibrations").exists()


def test_errors_that_a_calibration_does_not_lower_are_named(tmp_path: Path, labelled: str) -> None:
    larger = "is larger after than before: this map makes it no more reliable"
    output = run(tmp_path, labelled, "--method", "isotonic", "--for", VERSION, "--combine")
    [path] = (tmp_path / "calibrations").glob("*.json")
    found = load(path)
    risen = [each.name for each in found.maps if each.ece_before and each.ece_after.value > each.ece_before.value]
    assert [name for name in found.names if f"the error of {name} {larger}" in output] == risen == []
    sample = Path(__file__).parents[2] / "examples" / "data" / "rows.jsonl"
    output = run(tmp_path, str(sample), "--method", "isotonic", "--for", VERSION, "--combine")
    assert [line for line in output.splitlines() if line.startswith("the error")] == [
        f"the error of rubric {larger}",
        "the error of the combination is larger than that of reward_model after its own map",
    ]


def test_where_the_newest_version_has_too_few_rewards_the_error_names_those_that_have_enough(tmp_path: Path) -> None:
    """As after a reward model was activated: the version is new, and the store is full of the one before."""
    older, oldest = "sv_ba9876543210", "sv_aaaaaaaaaaaa"

    async def fill() -> None:
        url = f"sqlite:///{tmp_path / 'labs.sqlite'}"
        await migrate(url)
        store = await Store.open(url)
        rows = [an_evaluation(reward=n / 50) for n in range(1)]
        rows += [an_evaluation(reward=n / 50, scoring_version=older, created_at=EARLIER) for n in range(44)]
        rows += [an_evaluation(reward=n / 50, scoring_version=oldest, created_at=EARLIER) for n in range(9)]
        async with store.transaction() as unit:
            await unit.evaluations.add_many([replace(row, evaluation_id=f"ev_{n}") for n, row in enumerate(rows)])
        await store.close()

    asyncio.run(fill())
    said = rf"min_max needs 30 rewards .*, and of {VERSION} the store has 1; --for takes one of these: {older} \(44\)$"
    with pytest.raises(InvalidRequest, match=said):
        run(tmp_path, "--from-store", "--method", "min_max")
    with pytest.raises(InvalidRequest, match="Too little data: percentile needs 100 rows, there are 1"):
        run(tmp_path, "--from-store", "--method", "percentile")
    assert "on 44 rows" in run(tmp_path, "--from-store", "--method", "min_max", "--for", older)


def test_after_the_result_it_is_shown_what_still_takes_its_time(
    tmp_path: Path, labelled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []

    @contextmanager
    def busy(console: Console, what: str) -> Iterator[None]:
        assert console.stderr
        shown.append(what)
        yield
        shown.append("done")

    monkeypatch.setattr(command, "busy", busy)
    monkeypatch.setattr(fitting, "refused", lambda calibrations, settings: shown.append("looked") or {})
    run(tmp_path, labelled, "--method", "min_max", "--for", VERSION)
    assert shown == ["seeing whether the server would take it", "looked", "done"]
