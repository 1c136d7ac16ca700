"""The tools, criteria and fact groups that the authoring guide shows work when they are put into the example."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.processes import ROOT
from scenarios.library import load_library
from scenarios.lint import lint
from scenarios.template import begin

pytestmark = pytest.mark.slow

GUIDE = (ROOT / "docs/authoring.md").read_text()
NAME = "bike-shop/squeaky-brake"


def shown_in(section: str) -> list[dict[str, Any]]:
    """The YAML blocks of a section."""
    text = re.split(r"\n###? ", GUIDE.partition(f"### {section}\n")[2])[0]
    return [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)]


def shown_tools() -> dict[str, Any]:
    """The YAML blocks of the section on tools as one mapping."""
    return {key: value for block in shown_in("Tools") for key, value in block.items()}


def parts_of(path: Path) -> tuple[Path, Path, Path]:
    """The files of a scenario: its own, its rubric and its agents."""
    return path, path.with_suffix(".rubric.yaml"), path.with_suffix(".agents.yaml")


def test_the_tools_fit_into_the_example(tmp_path: Path) -> None:
    begin(NAME, tmp_path)
    path, shown = tmp_path / f"{NAME}.yaml", shown_tools()
    scenario, rubric, agents = (yaml.safe_load(each.read_text()) for each in parts_of(path))
    private = scenario["private"]
    scenario["public"]["tools"] = shown["public"]["tools"]
    private["tools"] = shown["private"]["tools"]
    private["persona"]["ending"]["goals"] = [["offer_inspection"], ["job_ticket"]]
    rubric["criteria"] += shown["criteria"]
    agents["oracle"] += shown["oracle"]
    for part, data in zip(parts_of(path), (scenario, rubric, agents), strict=True):
        part.write_text(yaml.safe_dump(data, sort_keys=False))
    assert lint([tmp_path]) == (1, [])


def test_shared_criteria_and_fact_groups_fit_into_the_example(tmp_path: Path) -> None:
    begin(NAME, tmp_path)
    path, collection = tmp_path / f"{NAME}.yaml", tmp_path / "bike-shop" / "collection.yaml"
    rubric_path = parts_of(path)[1]
    scenario, rubric, shared = (yaml.safe_load(each.read_text()) for each in (path, rubric_path, collection))
    scenario["private"] |= shown_in("A name for a list of facts")[0]["private"]
    common, own = shown_in("Criteria that scenarios share")
    shared |= common
    rubric["criteria"] = [each for each in rubric["criteria"] if each["id"] != "kind_words"] + own["criteria"]
    for file, data in ((path, scenario), (rubric_path, rubric), (collection, shared)):
        file.write_text(yaml.safe_dump(data, sort_keys=False))
    assert lint([tmp_path]) == (1, [])
    criteria = load_library(tmp_path).vault.open(*NAME.split("/")).secrets.rubric.criteria
    assert [(each.id, each.points, each.given) for each in criteria[-2:]] == [
        ("was_rude", -5, ()),
        ("kind_words", 3, ("pads_age",)),
    ]
