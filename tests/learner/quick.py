"""A run of a few seconds: a tiny configuration, and a stage that rewards long turns."""

from __future__ import annotations

from tests.learner.stage import StageServer

QUICK = (
    "model.width=32",
    "model.max_tokens=4",
    "warmup.steps=3",
    "warmup.batch=2",
    "rollout.groups=2",
    "rollout.group_size=2",
    "evaluation.episodes=2",
    "evaluation.every=1",
)


def settings(*changes: str) -> list[str]:
    """Arguments of the command line."""
    return [part for change in (*QUICK, *changes) for part in ("--set", change)]


def stage() -> StageServer:
    return StageServer(turns=2, score=lambda said: min(1.0, len("".join(said)) / 200))
