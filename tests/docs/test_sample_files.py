"""The files of examples/data are what the commands that the pages give them to accept, and come from their script."""

from __future__ import annotations

import importlib.util
import re
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.processes import ROOT
from reward_server.fitting.agreement.read import RowDefaults as Judged
from reward_server.fitting.agreement.read import read as read_judged
from reward_server.fitting.calibration.calibration_fit import fit
from reward_server.fitting.calibration.read import read as read_rewards
from reward_server.fitting.reward_model.read import RowOptions, read_dataset
from reward_server.offline.formats import convert
from reward_server.offline.rows import read_rows
from reward_server.reward_models.dataset import split
from reward_server.reward_models.recorded import scenario_text
from reward_server.server.engine import load_scenarios
from reward_server.settings import load_settings

pytestmark = pytest.mark.slow

DATA = ROOT / "examples" / "data"
PAGES = "\n".join(page.read_text() for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))])
FILES = sorted(path.name for path in DATA.glob("*.jsonl"))


@pytest.mark.parametrize("name", ["talks.jsonl", "other.jsonl", "pairs.jsonl"])
def test_reward_models_can_be_trained(name: str) -> None:
    found = read_dataset(DATA / name, RowOptions())
    parts = split(found, seed=0)
    assert list(parts.train.rows())
    # The server reads in a scenario: a model of rows without one would know nothing there.
    library = load_scenarios(load_settings({}).scenarios)
    card = library.catalog.find("customer-support", "leaking-blender")
    assert card is not None
    assert {each.scenario for each in found.conversations()} == {scenario_text(card.card)}


@pytest.mark.parametrize(("name", "method", "combine"), [("winners", "temperature", False), ("rows", "isotonic", True)])
def test_calibrations_can_be_fitted(name: str, method: str, combine: bool) -> None:
    found = read_rewards(DATA / f"{name}.jsonl")
    fitted = fit(found.data, method, "sv_0123456789ab", datetime(2026, 1, 1, tzinfo=UTC), combine=combine)
    assert all(each.ece_after is not None for each in fitted.maps)
    assert name != "winners" or f"{fitted.id}: temperature on {fitted.n} rows" in PAGES


def test_judges_can_be_measured() -> None:
    entries = read_judged(DATA / "judged.jsonl", Judged(scale=(1, 5)))
    assert len({entry.label for entry in entries}) > 2


def test_conversations_can_be_scored() -> None:
    rows = list(read_rows(DATA / "conversations.jsonl"))
    assert len(rows) >= 5
    for row in rows:
        assert row.problem is None
        assert list(convert(row.data, "auto"))


def test_every_file_is_used_by_a_page_and_what_pages_use_is_there() -> None:
    named = set(re.findall(r"examples/data/(\w+\.jsonl)", PAGES)) | {"pairs.jsonl"}
    assert named == set(FILES)
    assert "`pairs.jsonl`" in PAGES


def test_the_files_are_what_their_script_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("make_sample_files", DATA / "make.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "make_sample_files", made)
    spec.loader.exec_module(made)
    monkeypatch.setattr(made, "HERE", tmp_path)
    made.main()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        name: (DATA / name).read_text() for name in FILES
    }
