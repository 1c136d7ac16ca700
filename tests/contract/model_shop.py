"""Tiny reward models for contract tests: on the server's own encoder, each with one value for every conversation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from reward_server.reward_models import artefact
from reward_server.reward_models.artefact import DataCard
from reward_server.reward_models.featurisers import Featurisers
from reward_server.reward_models.heads import Heads
from reward_server.reward_models.registry import Registry
from tests.contract.house import House, Json

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
COMPOSITE: Json = {"composite": {"combine": "weighted_sum", "parts": [{"judge": "reward_model", "weight": 1.0}]}}
FIGURES = {"score": {"n": 12, "variance": 0.1, "r2": {"value": 0.5, "low": 0.3, "high": 0.7}}}


class Shop:
    """Models of the server's encoder that give every conversation the same value."""

    def __init__(self, house: House, folder: Path, featurisers: Featurisers) -> None:
        self.registry = Registry(house.settings.reward_models)
        self._folder = folder
        self._featurisers = featurisers

    def add(self, value: float, **changes: Any) -> str:
        width = self._featurisers.base.width
        still = np.zeros(width, dtype=np.float32)
        bias, costs = np.array([value], dtype=np.float32), self._featurisers.base.costs
        heads = Heads(("score",), still, still + 1, still[None], bias, costs=costs)
        about = {
            "data": DataCard(sha256="0" * 64, labelled=60, pairs=3, groups=9, grouped_by="group", source="file"),
            "split": {"train": 40},
            "recipe": {"seed": 0},
            "encoder": "packaged",
            "encoder_version": self._featurisers.encoder.version,
            "features_version": self._featurisers.base.version,
            "metrics": FIGURES,
            "code_version": "0.1.0",
            "engine": "e" * 64,
            **changes,
        }
        place = self._folder / f"model-{value}-{len(changes)}"
        artefact.write(place, heads, about, NOW + timedelta(hours=value))
        return self.registry.add(artefact.read(place)).id
