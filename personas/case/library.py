"""Loads the temperaments that come with the package."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

import yaml

from personas.case.temperament import Temperament


@cache
def load_temperaments() -> Mapping[str, Temperament]:
    """Slug -> temperament, in alphabetical order."""
    folder = files("personas") / "temperaments"
    sources = sorted((f for f in folder.iterdir() if f.name.endswith(".yaml")), key=lambda f: f.name)
    read = (yaml.load(f.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader) for f in sources)
    loaded = [Temperament.model_validate(data) for data in read]
    return MappingProxyType({temperament.slug: temperament for temperament in loaded})
