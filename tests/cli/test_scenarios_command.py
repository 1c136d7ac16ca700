"""`labs scenarios`: what an author sees, and exit codes that a build can rely on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reward_server.cli.scenarios import app
from reward_server.errors import LabsError
from scenarios.template import begin

pytestmark = pytest.mark.usefixtures("shared_encoder")
QUICK = ["--seeds", "1", "--probing", "20"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    begin("bike-shop/noise", tmp_path)
    return tmp_path


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


@pytest.mark.slow
def test_check_passes_a_sound_scenario_and_writes_the_public_table(root: Path, tmp_path: Path) -> None:
    table = tmp_path / "table.md"
    code, output = run("check", "bike-shop/noise", "--dir", root, "--markdown", table, *QUICK)
    assert code == 0
    assert "1 of 1 scenarios passed" in output
    assert f"labs scenarios check bike-shop/noise --dir {root}\n" in output
    assert "Notes (·) fail nothing; --details prints what they rest on." in output
    assert "| bike-shop/noise |" in table.read_text()
    assert "brake" not in table.read_text()


@pytest.mark.slow
def test_check_prints_json_on_demand(root: Path) -> None:
    result = CliRunner().invoke(app, ["check", "--dir", str(root), "--json", *QUICK])
    report = json.loads(result.stdout)
    assert report["scoring_version"].startswith("sv_")
    (scenario,) = report["scenarios"]
    assert scenario["passed"] is True
    assert len(scenario["rewards"]["oracle"]) == 2


@pytest.mark.slow
def test_check_fails_a_scenario_that_does_not_hold(root: Path) -> None:
    path = root / "bike-shop" / "noise.agents.yaml"
    path.write_text(path.read_text().replace("- say: How old are the brake pads?", "- say: Hm.", 1))
    code, output = run("check", "--dir", root, *QUICK)
    assert code == 1
    assert "0 of 1 scenarios passed" in output
    assert "`pads_age` was not elicited" in output


@pytest.mark.slow
def test_check_reports_findings_by_line_and_goes_on_with_the_rest(root: Path) -> None:
    begin("bike-shop/other", root)
    path = root / "bike-shop" / "noise.rubric.yaml"
    path.write_text(path.read_text().replace("weight: 0.5}", "weight: 0.4}"))
    code, output = run("check", "--dir", root, *QUICK)
    assert code == 1
    assert "noise.rubric.yaml:" in output
    assert "sum to 1" in output
    assert "1 of 1 scenarios passed" in output
    assert "1 finding in files that were left out" in output


@pytest.mark.slow
def test_check_says_what_its_columns_mean(root: Path) -> None:
    _, output = run("check", "--dir", root, *QUICK)
    said = " ".join(output.split())
    columns = ("oracle to poor", "best bad policy", "understood, wrong, opened, heard")
    assert all(f"{column}: " in said for column in columns)
    assert "on held-out labelled turns; leaks: facts told while they were closed" in said


def test_check_of_nothing_usable_is_one_clear_error(root: Path) -> None:
    with pytest.raises(LabsError, match="nothing could be checked"):
        run("check", "bike-shop/absent", "--dir", root)


def test_list_shows_public_facts(root: Path) -> None:
    code, output = run("list", "--dir", root)
    assert code == 0
    assert "bike-shop" in output
    assert "front brake" not in output


def test_the_list_keeps_names_whole_wherever_it_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "the-noise-that-nobody-in-the-whole-town-can-explain"
    begin(f"bike-shop/{name}", tmp_path)
    monkeypatch.setenv("COLUMNS", "40")
    piped = run("list", "--dir", tmp_path)[1]
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes it for a terminal
    narrow = run("list", "--dir", tmp_path)[1]
    for output in (piped, narrow):
        assert name in output
        assert "bike-shop" in output
        assert "…" not in output
    assert len(piped.splitlines()) < len(narrow.splitlines())


def test_new_begins_a_scenario_that_lint_accepts(tmp_path: Path) -> None:
    code, output = run("new", "tool-library/late-drill", "--dir", tmp_path)
    assert code == 0
    assert "labs scenarios check tool-library/late-drill" in output
    assert "make late-drill.yaml, late-drill.rubric.yaml and the oracle in late-drill.agents.yaml your own" in output
    assert run("list", "--dir", tmp_path)[0] == 0


def test_new_refuses_bad_names_and_existing_files(root: Path) -> None:
    with pytest.raises(LabsError, match="COLLECTION/SLUG"):
        run("new", "Bike Shop", "--dir", root)
    with pytest.raises(LabsError, match="exists already"):
        run("new", "bike-shop/noise", "--dir", root)
