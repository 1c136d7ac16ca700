"""`labs doctor`: red where `labs serve` refuses to start, and what it shows of judges, models and calibrations."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from benchmarks.processes import ROOT
from benchmarks.real_servers import RedisServer
from reward_server.store.migrate import migrate
from tests.cli.warm import Labs

pytestmark = pytest.mark.slow

EXAMPLE = ROOT / "examples" / "composite_scenario"


def written_by_a_newer_version(data: Path) -> None:
    url = f"sqlite:///{data / 'labs.sqlite'}"
    asyncio.run(migrate(url))
    with create_engine(url).begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = 'from_the_future'"))


@pytest.mark.parametrize(
    ("case", "line"),
    [
        ("plug-in", "✗ plug-ins"),
        ("judge of a scenario", "✗ scoring"),
        ("no key", "✗ keys"),
        ("address", "✗ port"),
        ("database", "✗ database"),
        ("pepper", "✗ keys"),
    ],
)
def test_what_stops_a_start_stops_the_doctor_with_the_same_words(
    labs: Labs, tmp_path: Path, case: str, line: str
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    if case == "database":
        written_by_a_newer_version(data)
    if case == "pepper":
        (data / "pepper").write_text("short")
    environment = {
        "plug-in": {"LABS_JUDGE_PLUGINS": "nobodys"},
        "judge of a scenario": {"LABS_SCENARIOS": str(EXAMPLE)},
        "no key": {"LABS_HOST": "0.0.0.0"},
        "address": {"LABS_HOST": "203.0.113.1"},
    }.get(case, {})
    given = {"LABS_DATA": str(data), "LABS_PORT": "0", **environment}
    refused, looked = labs("serve", **given), labs("doctor", **given)
    assert (refused.returncode, looked.returncode) == (1, 1), looked.stdout
    assert line in looked.stdout
    assert looked.stdout.count(refused.stderr.removeprefix("labs: ").strip()) == 1
    assert looked.stderr == ""


def test_judges_models_and_calibrations_have_a_line_and_nothing_is_written(labs: Labs, tmp_path: Path) -> None:
    data = tmp_path / "data"
    done = labs("doctor", LABS_DATA=str(data), LABS_PORT="0")
    assert done.returncode == 0, done.stdout
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert {"✓ plug-ins none", "✓ reward model none is active", "✓ calibrations 0"} <= set(lines)
    assert any(line.startswith("✓ scoring sv_") for line in lines)
    assert not data.exists()


def test_a_plug_in_is_shown_with_its_version(labs: Labs, tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / "judge_plugin" / "plain_speech.py", tmp_path)
    about = tmp_path / "labs_plain_speech-1.0.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: labs-plain-speech\nVersion: 1.0.0\n")
    (about / "entry_points.txt").write_text("[labs.judges]\nbrevity = plain_speech:Brevity\n")
    given = {"LABS_JUDGE_PLUGINS": "brevity", "LABS_SCENARIOS": str(EXAMPLE), "PYTHONPATH": f"{ROOT}:{tmp_path}"}
    done = labs("doctor", LABS_DATA=str(tmp_path / "data"), LABS_PORT="0", **given)
    assert done.returncode == 0, done.stdout
    assert "brevity (labs-plain-speech==1.0.0/" in done.stdout


def test_a_model_and_a_calibration_that_cannot_be_used_are_named_with_the_way_out(labs: Labs, tmp_path: Path) -> None:
    (tmp_path / "reward-models").mkdir()
    (tmp_path / "reward-models" / "active.json").write_text(json.dumps({"id": "rm_0123456789ab"}))
    (tmp_path / "calibrations").mkdir()
    (tmp_path / "calibrations" / "cal_0123456789ab.json").write_text("{}")
    done = labs("doctor", LABS_DATA=str(tmp_path), LABS_PORT="0")
    assert done.returncode == 1
    assert "rm_0123456789ab is active, and cannot be used" in done.stdout
    assert (
        "There is no reward model rm_0123456789ab; ./labs reward-model list shows all models: activate" in done.stdout
    )
    assert "damaged: cal_0123456789ab" in done.stdout


def test_an_active_model_of_a_lab_is_looked_at_as_well(labs: Labs, tmp_path: Path) -> None:
    of_lab = tmp_path / "reward-models" / "labs" / "development"
    of_lab.mkdir(parents=True)
    (of_lab / "active.json").write_text(json.dumps({"id": "rm_0123456789ab"}))
    done = labs("doctor", LABS_DATA=str(tmp_path), LABS_PORT="0")
    assert done.returncode == 1
    assert "rm_0123456789ab is active for lab development, and cannot be used" in done.stdout


@pytest.mark.parametrize(
    ("wrong", "unchecked", "looked_at"),
    [
        ({"LABS_LLM_PROVIDER": "openai"}, {"scoring", "calibrations", "llm"}, {"encoder", "scenarios", "port"}),
        ({"LABS_PERSONA_VOICE": "llm"}, {"voice"}, {"scoring", "port"}),
        ({"LABS_PORT": "x"}, {"port"}, {"scoring", "llm"}),
    ],
)
def test_a_wrong_setting_is_said_in_its_place_and_the_rest_is_looked_at(
    labs: Labs, tmp_path: Path, wrong: dict[str, str], unchecked: set[str], looked_at: set[str]
) -> None:
    given = {"LABS_DATA": str(tmp_path), "LABS_PORT": "0", **wrong}
    refused, looked = labs("serve", **given), labs("doctor", **given)
    assert (refused.returncode, looked.returncode) == (1, 1)
    assert "✗ settings     not usable\n" in looked.stdout
    assert looked.stdout.count(refused.stderr.removeprefix("labs: ").strip()) == 1
    assert "settings     every" not in looked.stdout
    assert all(f"✗ {name:<12} not checked, see above" in looked.stdout for name in unchecked)
    assert all(f"✓ {name:<12}" in looked.stdout for name in looked_at)


def test_where_nobody_is_to_be_asked_the_setting_is_named(labs: Labs, tmp_path: Path) -> None:
    done = labs("doctor", "--ask", LABS_DATA=str(tmp_path), LABS_PORT="0")
    assert done.returncode == 0
    assert "! llm          none to ask" in done.stdout
    assert "LABS_LLM_PROVIDER" in done.stdout


def test_redis_is_asked(labs: Labs, redis: RedisServer, tmp_path: Path) -> None:
    found = labs("doctor", LABS_DATA=str(tmp_path), LABS_PORT="0", LABS_REDIS_URL=redis.url)
    assert (found.returncode, "✓ redis        answers\n" in found.stdout) == (0, True), found.stdout
    missed = labs("doctor", LABS_DATA=str(tmp_path), LABS_PORT="0", LABS_REDIS_URL="redis://:secret@127.0.0.1:1/0")
    assert missed.returncode == 1
    assert "✗ redis        does not answer in time\n" in missed.stdout
    assert "LABS_REDIS_URL" in missed.stdout
    assert "secret" not in missed.stdout + missed.stderr
    assert "✓ redis        none is set\n" in labs("doctor", LABS_DATA=str(tmp_path), LABS_PORT="0").stdout


@pytest.mark.slow
def test_calibrations_that_the_present_version_does_not_use_are_counted(labs: Labs, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"reward": n / 40}) + "\n" for n in range(40)))
    looked = labs("doctor", LABS_DATA=str(tmp_path), LABS_PORT="0")
    present = re.search(r"scoring +(sv_\w+)\n", looked.stdout)
    assert present, looked.stdout
    for owner in (present[1], "sv_0123456789ab", "rm_0123456789ab"):
        fitted = labs(
            "calibrate", str(tmp_path / "rows.jsonl"), "--method", "min_max", "--for", owner, "--data", str(tmp_path)
        )
        assert fitted.returncode == 0, fitted.stderr
    done = labs("doctor", LABS_DATA=str(tmp_path), LABS_PORT="0")
    assert done.returncode == 0, done.stdout
    assert "3, 1 for the current rewards; for other versions or models: cal_" in done.stdout


def test_a_misspelt_setting_is_named_and_stops_nothing(labs: Labs, tmp_path: Path) -> None:
    given = {"LABS_SCENARIO": "x", "LABS_FOO": "1", "LABS_URL": "http://127.0.0.1:1"}
    done = labs("doctor", LABS_DATA=str(tmp_path), LABS_PORT="0", **given)
    assert done.returncode == 0, done.stdout
    assert "! settings" in done.stdout
    assert "nothing reads LABS_FOO, LABS_SCENARIO (" in done.stdout, "nothing is near LABS_FOO"
    assert "LABS_SCENARIO (did you mean LABS_SCENARIOS?)" in done.stdout
    assert "LABS_URL" not in done.stdout


def test_a_wrong_setting_hides_no_misspelt_one(labs: Labs, tmp_path: Path) -> None:
    done = labs("doctor", LABS_DATA=str(tmp_path), LABS_PORT="0", LABS_PROT="1", LABS_DRAIN_S="x")
    assert done.returncode == 1
    assert "✗ settings     not usable\n    LABS_DRAIN_S: " in done.stdout
    assert "! settings     1 without effect\n    nothing reads LABS_PROT (did you mean LABS_PORT?)" in done.stdout
