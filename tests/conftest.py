"""Settings of the whole suite."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Vectors of authored sentences are kept between the suite's many server processes, and between runs."""
    os.environ.setdefault("LABS_CACHE", str(Path(config.rootpath) / ".pytest_cache" / "labs"))
