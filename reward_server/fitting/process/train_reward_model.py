"""Trains a reward model of a lab; goes on where an attempt before it was ended."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from reward_server.errors import UnusableModel
from reward_server.fitting.reward_model.head_training import Recipe
from reward_server.fitting.reward_model.read import RowOptions, read_dataset
from reward_server.fitting.reward_model.tools import tools_on
from reward_server.fitting.reward_model.train import TrainingTask, train
from reward_server.reward_models import artefact
from reward_server.reward_models.artefact import Artefact
from reward_server.reward_models.dataset import check_enough
from reward_server.reward_models.feature_shelf import FeatureShelf
from reward_server.reward_models.featurisers import Featurisers
from reward_server.reward_models.fitness import unfit
from reward_server.reward_models.registry import Registry
from reward_server.reward_models.summary import model_summary
from trainer_client.wire import TrainingOptions

PARTS = {
    "reading": (0.0, 0.02),
    "loading": (0.02, 0.05),
    "baselines": (0.05, 0.15),
    "encoding": (0.15, 0.6),
    "training": (0.6, 0.9),
    "measuring": (0.9, 1.0),
}
"""A guess at what takes how long."""


def do(order: dict[str, Any], report: Callable[[str, int, int], None]) -> dict[str, Any]:
    """The order has `rows`, `place` (where what was begun is kept), `models` (where the model goes), `encoder`,
    `created` and `options`.
    """
    out = Path(order["place"]) / "model"
    trained = _finished(out)
    if trained is None:
        trained = _trained(order, out, report)
    kept = Registry(Path(order["models"])).add(trained)
    why = unfit(kept.card)
    return {
        "reward_model_id": kept.id,
        **{name: value for name, value in model_summary(kept.card).items() if name != "id"},
        "notes": list(kept.card.data.notes),
        **({} if why is None else {"unfit": why}),
    }


def _finished(out: Path) -> Artefact | None:
    """The artefact that an attempt before finished, and could not tell any more."""
    with suppress(UnusableModel):
        return artefact.read(out)
    return None


def _trained(order: dict[str, Any], out: Path, report: Callable[[str, int, int], None]) -> Artefact:
    options = TrainingOptions.model_validate(order["options"])
    report("reading", 0, 1)
    dataset = read_dataset(Path(order["rows"]), RowOptions(options.scale, options.ties))
    check_enough(dataset)
    report("loading the encoder", 0, 1)
    featurisers = Featurisers(order["encoder"])
    tools = tools_on(featurisers, options.reads, FeatureShelf(out.parent / "features"))
    task = TrainingTask(
        out=out,
        encoder=order["encoder"],
        created=datetime.fromisoformat(order["created"]),
        scale=options.scale,
        recipe=Recipe(seed=options.seed, epochs=options.epochs),
        held_out=options.held_out,
        reads=options.reads,
        resume=True,
        keep_uncertainty=options.keep_uncertainty,
        features=options.features,
    )
    train(dataset, task, tools, report)
    return artefact.read(out)
