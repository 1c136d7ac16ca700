"""Summaries of learned models and of calibrations for whoever may use them."""

from __future__ import annotations

from typing import Any

from reward_server.reward_models.artefact import Card
from reward_server.reward_models.calibration import Calibration


def model_summary(card: Card) -> dict[str, Any]:
    """A reward model with its figures on held-out rows."""
    figures = {
        name: {each: value for each, value in found.items() if each != "variance"}
        for name, found in card.metrics.items()
    }
    return {
        "id": card.id,
        "created_at": card.created.isoformat().replace("+00:00", "Z"),
        "data_hash": card.data.sha256,
        "labelled": card.data.labelled,
        "pairs": card.data.pairs,
        "heads": list(card.heads),
        "encoder_version": card.encoder_version,
        "held_out": figures,
    }


def calibration_summary(calibration: Calibration) -> dict[str, Any]:
    """A calibration with its errors before and after."""
    owner = "scoring_version" if calibration.belongs_to.startswith("sv_") else "reward_model_id"
    rewards = [each.model_dump(include={"name", "ece_before", "ece_after"}) for each in calibration.maps]
    together = calibration.combination
    return {
        "id": calibration.id,
        "method": calibration.method,
        "uses_labels": not calibration.is_scaling,
        "n": calibration.n,
        owner: calibration.belongs_to,
        "data_hash": calibration.data_hash,
        "range": calibration.range,
        "rewards": [{name: value for name, value in each.items() if value is not None} for each in rewards],
        **({} if together is None else {"combination": together.model_dump()}),
        "created_at": calibration.created.isoformat().replace("+00:00", "Z"),
    }
