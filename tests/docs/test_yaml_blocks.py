"""YAML that the docs show and that templates write loads with any YAML parser, not only with the one of Labs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PAGES = [page for page in sorted((ROOT / "docs").glob("*.md")) if "```yaml" in page.read_text()]
TEMPLATES = sorted((ROOT / "scenarios" / "template").glob("*.yaml"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_of_a_page_load(page: Path) -> None:
    for block in re.findall(r"^```yaml\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
        assert yaml.load(block, Loader=yaml.SafeLoader) is not None


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.name)
def test_a_template_loads(template: Path) -> None:
    assert isinstance(yaml.load(template.read_text(), Loader=yaml.SafeLoader), dict)


def test_the_page_of_rubrics_is_among_them() -> None:
    assert {"rubrics.md", "authoring.md"} <= {page.name for page in PAGES}
