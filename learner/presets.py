"""Configurations that come with the package: to run as they are, or to begin an own one with."""

from __future__ import annotations

import importlib.resources
from pathlib import Path

from learner.config import ConfigError
from learner.suggestions import nearest


def demo_file() -> Path:
    """The configuration of the demo."""
    return preset_file("demo")


def preset_names() -> list[str]:
    """All there are."""
    return sorted(path.stem for path in _folder().glob("*.toml"))


def preset_file(name: str) -> Path:
    """The file of one; raises ConfigError for a name that is none."""
    path = _folder() / f"{name}.toml"
    if not path.is_file():
        raise ConfigError(f"preset {name!r}: {nearest(name, preset_names())}")
    return path


def about(name: str) -> str:
    """The first line of a preset."""
    return preset_file(name).read_text().partition("\n")[0].lstrip("# ")


def file_or_preset(given: Path) -> Path:
    """A file where there is one, else the preset of that name; raises ConfigError where it is neither."""
    if given.exists() or given.suffix or given.parent != Path():
        return given
    if str(given) not in preset_names():
        hint = nearest(str(given), preset_names()).removeprefix("unknown; ")
        raise ConfigError(f"{given}: there is no file and no preset of this name; {hint}")
    return preset_file(str(given))


def _folder() -> Path:
    return Path(str(importlib.resources.files("learner") / "data" / "presets"))
