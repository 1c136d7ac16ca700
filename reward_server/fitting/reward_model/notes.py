"""Notes that a reader of a training's report needs, in sentences: its data, its split, how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reward_server.fitting.reward_model.style_check import style_lines
from reward_server.reward_models.artefact import DataCard
from scenarios.spelling import counted


def notes(about: Mapping[str, Any]) -> list[str]:
    """The notes for a reader of the report about data, split and training."""
    data: DataCard = about["data"]
    sizes, recipe = about["split"], about["recipe"]
    lines = [
        f"{counted(data.labelled, 'labelled conversation')} and {counted(data.pairs, 'preference pair')} in "
        f"{counted(data.groups, 'group')}, by "
        f"{data.grouped_by}; data {data.sha256[:12]}",
        f"Split by group (seed {recipe['seed']}): {sizes['train']} rows to train, {sizes['validation']} to choose "
        f"settings, {sizes['held_out']} held out; {counted(sizes['duplicates_removed'], 'row')} left out of the first "
        "two, because a later part holds the same conversation",
        f"Penalty {recipe['l2'][0]:g}, weights of epoch {recipe['epoch']}, encoder {about['encoder_version']}",
    ]
    if "system_parts" in sizes:
        lines.append(
            f"Split by group and system: rows name {counted(sizes['systems'], 'system')}. For the figures `unseen "
            f"systems`, heads are trained without a part of the systems ({sizes['system_parts']} parts in turn) and "
            "asked about the held-out rows of that part: they have seen neither the group nor the system of a row"
        )
    if "features_tried" in recipe:
        tried = ", ".join(f"{reading} {merit:.3f}" for reading, merit in recipe["features_tried"].items())
        lines.append(f"Features: {recipe['features']}, which did best on the validation part ({tried})")
    if "relations" in recipe:
        weights = ", ".join(f"{name} {weight:.2f}" for name, weight in recipe["relations"].items())
        lines.append(
            f"The head is combined with the likeness of reply and request; weights per standard deviation: {weights}"
        )
    if capped := cap_line(recipe):
        lines.append(capped)
    if recipe["uncertainty"] != "none":
        lines.append("Uncertainty by a last-layer posterior (Laplace; for labels, Bayesian ridge)")
    return [*lines, *style_lines(about["style"]), *data.notes]


def cap_line(recipe: Mapping[str, Any]) -> str:
    """Says that a training was cut short; empty where it ended by itself."""
    if recipe["epochs_run"] < recipe["epochs"] or recipe["epochs_run"] - recipe["epoch"] >= recipe["patience"]:
        return ""
    after = recipe["epochs_run"] - recipe["epoch"]
    best = f"its best epoch was {counted(after, 'epoch')} before that" if after else "it was still improving"
    return (
        f"Training ended at its limit of {counted(recipe['epochs'], 'epoch')}, and {best}: a larger --epochs may give "
        "a better model"
    )
