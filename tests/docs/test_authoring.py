"""The tools that the authoring guide shows work when they are put into the example scenario."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from benchmarks.processes import ROOT
from scenarios.lint import lint
from scenarios.template import begin

GUIDE = (ROOT / "docs/authoring.md").read_text()
NAME = "bike-shop/squeaky-brake"


def shown_tools() -> dict[str, Any]:
    """The YAML blocks of the section on tools as one mapping."""
    section = GUIDE.partition("### Tools")[2].partition("\n## ")[0]
    shown: dict[str, Any] = {}
    for block in re.findall(r"^```yaml\n(.*?)^```$", section, re.MULTILINE | re.DOTALL):
        shown |= yaml.safe_load(block)
    return shown


def test_the_tools_fit_into_the_example(tmp_path: Path) -> None:
    begin(NAME, tmp_path)
    path = tmp_path / f"{NAME}.yaml"
    scenario, shown = yaml.safe_load(path.read_text()), shown_tools()
    private = scenario["private"]
    scenario["public"]["tools"] = shown["public"]["tools"]
    private["tools"] = shown["private"]["tools"]
    private["persona"]["ending"]["goals"] = [["offer_inspection"], ["job_ticket"]]
    private["rubric"]["criteria"] += shown["criteria"]
    private["exam"]["oracle"] += shown["oracle"]
    path.write_text(yaml.safe_dump(scenario, sort_keys=False))
    assert lint([tmp_path]) == (1, [])
