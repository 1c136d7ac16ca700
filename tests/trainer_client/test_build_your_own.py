"""The examples of docs/build-your-own.md run, and print what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_examples_print_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "build-your-own.md").read_text(), re.DOTALL)
    code = "\n".join(blocks)
    names: dict[str, object] = {}
    exec(compile(code, "docs/build-your-own.md", "exec"), names)
    names["judge"].close()  # type: ignore[attr-defined]
    assert capsys.readouterr().out.splitlines() == re.findall(r"print\(.*\)  # (.*)", code)
