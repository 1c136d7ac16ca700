"""The policy of a stored run or of a folder of transformers: to export it, serve it, or play with it."""

from __future__ import annotations

import dataclasses
import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from learner import checkpoint
from learner.checkpoint import Checkpoint
from learner.metrics import best_evaluation
from learner.model import FULL, Policy
from learner.models import load_checkpoint, load_given, never_sampled, stops_of
from learner.sections import WantedSplit
from learner.stages import style_of
from learner.support import Truncation
from trainer_client.chat.tokens import Renderer


@dataclass(frozen=True)
class PlaySettings:
    """The settings with which a run plays its held-out episodes."""

    step: int
    """Update of the checkpoint."""
    scenarios: tuple[str, ...]
    """Those it holds out, or else those it trains on; a collection stands for all its scenarios."""
    temperature: float
    max_turns: int | None
    """None: as many as the scenario allows."""
    reward_config: dict[str, Any]
    device: str
    held_out_split: WantedSplit
    """Variants that it is measured on; a run from before there were any plays all."""
    single_turn: bool
    """It was trained on single replies, not on episodes."""


@dataclass(frozen=True)
class StoredPolicy:
    """A policy, and how it writes turns."""

    model: Any
    tokenizer: Any
    renderer: Renderer
    name: str
    max_tokens: int = 256
    system: str = "card"
    """System prompt that it was trained with: `card`, `none` or a text."""
    played: PlaySettings | None = None
    """How its run played; None: it is not of a run."""
    precision: torch.dtype | None = None
    """What matrix products are computed in; None: the weights' own."""
    truncation: Truncation = FULL
    """What its sampling leaves out."""

    @functools.cached_property
    def banned(self) -> list[int]:
        """Ids that are never sampled."""
        return never_sampled(self.model, self.tokenizer)

    def policy(self, temperature: float = 1.0) -> Policy:
        """The distribution it acts by."""
        return Policy(
            self.model,
            end_id=self.renderer.end_id,
            banned=self.banned,
            temperature=temperature,
            truncation=self.truncation,
            autocast=self.precision,
            packs=False,
        )


def chosen_checkpoint(run: Path, which: str) -> Checkpoint:
    """`best` (highest held-out reward, or lowest held-out loss of a run on a file), `last`, or the number of an update.

    Without an evaluation, `best` is the last one.
    """
    folder = run / "checkpoints"
    if which.isdigit():
        found = checkpoint.at(folder, int(which))
    elif which == "last":
        found = checkpoint.newest(folder)
    elif which == "best":
        best = best_evaluation(run / "metrics.jsonl")
        found = (checkpoint.at(folder, best[0]) if best else None) or checkpoint.newest(folder)
    else:
        raise ValueError(f"{which!r} is not a checkpoint; use best, last or the number of an update")
    if found is None:
        kept = ", ".join(str(int(path.name.removeprefix("step-"))) for path in sorted(folder.glob("step-*")))
        raise ValueError(f"{run} has no checkpoint {which}" + (f"; available are {kept}" if kept else ""))
    return found


def open_stored(path: Path, which: str = "best") -> StoredPolicy:
    """The policy of a run's folder, or of a folder that transformers loads."""
    if not path.is_dir():
        raise ValueError(f"{path} is not a folder; give the folder of a run or of a model")
    if not (path / "checkpoints").is_dir():
        if not (path / "config.json").exists():
            raise ValueError(f"{path} contains neither a run (checkpoints/) nor a transformers model (config.json)")
        model, tokenizer = load_given(str(path))
        return _stored(model, tokenizer, path.name, {})
    found = chosen_checkpoint(path, which)
    resolved = json.loads((path / "config.json").read_text())["resolved"]
    settings = resolved["model"]
    model, tokenizer = load_checkpoint(found.model_path, path, settings["path"])
    return dataclasses.replace(
        _stored(model, tokenizer, path.name, settings),
        system=style_of(resolved["server"]["system"], settings["path"]),
        played=_played(found.step, resolved),
        precision=torch.bfloat16 if settings["precision"] == "bfloat16" else None,
        truncation=Truncation(settings.get("top_p", 1.0), settings.get("top_k", 0)),
    )


def _played(step: int, resolved: dict[str, Any]) -> PlaySettings:
    server = resolved["server"]
    return PlaySettings(
        step=step,
        scenarios=tuple(server["held_out"] or server["scenarios"] or [f"{server['collection']}/{server['scenario']}"]),
        temperature=resolved["model"]["temperature"],
        max_turns=server["max_turns"],
        reward_config=server["reward_config"],
        device=resolved["model"]["device"].partition(":")[0],
        held_out_split=server.get("held_out_split"),
        single_turn=resolved["rollout"]["single_turn"],
    )


def _stored(model: Any, tokenizer: Any, name: str, settings: dict[str, Any]) -> StoredPolicy:
    renderer = Renderer(tokenizer, options=settings.get("template_options"), stops=stops_of(model))
    return StoredPolicy(model.eval(), tokenizer, renderer, name, settings.get("max_tokens", 256))
