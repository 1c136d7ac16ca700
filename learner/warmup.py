"""Scripted dialogues that a fresh policy is warmed up on, before any reward.

A script is a list of exchanges written by hand (a line of the agent, good or bad, and what a persona
might answer) and a few styles of agent, from thorough to hasty. Dialogues are composed from them at
random, most of them poor, so the warmed-up policy speaks in whole sentences and has no plan. It
copies the scripted agents' tokens by maximum likelihood; the persona's are context.
"""

from __future__ import annotations

import importlib.resources
import json
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from learner.display import Now, silent
from learner.model import Policy, rows_of
from learner.types import Segment
from trainer_client.chat.tokens import Renderer, Tokenizer

KINDS = ("good", "plan", "idle", "chatter", "rude", "premature")


@dataclass(frozen=True)
class ScriptedExchange:
    """A line of the agent, and what a persona might answer."""

    kind: str
    agent: str
    persona: tuple[str, ...]


@dataclass(frozen=True)
class Style:
    """The style of one sort of agent: which kinds of line it uses at first, and which later on."""

    name: str
    weight: float
    early: Mapping[str, float]
    late: Mapping[str, float]


@dataclass(frozen=True)
class Script:
    """The lines that dialogues are composed of."""

    collection: str
    scenario: str
    openings: tuple[str, ...]
    styles: tuple[Style, ...]
    exchanges: tuple[ScriptedExchange, ...]

    def texts(self) -> list[str]:
        """Every line, for the vocabulary."""
        return [*self.openings, *(line for item in self.exchanges for line in (item.agent, *item.persona))]


@dataclass(frozen=True)
class ScriptedDialogue:
    """An opening, then lines of the agent with the answers between them."""

    opening: str
    exchanges: tuple[tuple[str, str], ...]
    """(agent, persona) pairs; the last answer is never read by anyone."""


@dataclass(frozen=True)
class WarmupSettings:
    """The length and the strength of the warm-up."""

    steps: int = 200
    batch: int = 8
    turns: int = 12
    learning_rate: float = 4e-3


def load_script(name: str) -> Script:
    """A script by the name of one shipped here, or by path."""
    path = Path(name)
    if path.suffix == ".json":
        text = path.read_text()
    else:
        shipped = importlib.resources.files("learner") / "data" / f"{name}.json"
        if not shipped.is_file():
            raise ValueError(f"there is no packaged script {name!r}; give the path of a .json file")
        text = shipped.read_text()
    return _read_script(json.loads(text))


def _read_script(content: Mapping[str, Any]) -> Script:
    exchanges = tuple(
        ScriptedExchange(item["kind"], item["agent"], tuple(item["persona"])) for item in content["exchanges"]
    )
    styles = tuple(Style(**item) for item in content["styles"])
    used = {kind for style in styles for kind in (*style.early, *style.late)}
    unknown = (used | {exchange.kind for exchange in exchanges}) - set(KINDS)
    if unknown:
        raise ValueError(f"unknown kind of line {min(unknown)!r}; known are {', '.join(KINDS)}")
    return Script(content["collection"], content["scenario"], tuple(content["openings"]), styles, exchanges)


def compose(script: Script, turns: int, chance: random.Random) -> ScriptedDialogue:
    """One dialogue in a random style: lines in any order, none said twice while there are others."""
    style = chance.choices(script.styles, [style.weight for style in script.styles])[0]
    change = chance.randint(turns // 2, max(turns - 3, turns // 2))
    left = list(script.exchanges)
    pairs = []
    for turn in range(turns):
        wanted = style.early if turn < change else style.late
        weights = [wanted.get(exchange.kind, 0.0) for exchange in left]
        if not any(weights):
            left = list(script.exchanges)
            weights = [wanted.get(exchange.kind, 0.0) for exchange in left]
        exchange = chance.choices(left, weights)[0]
        left.remove(exchange)
        pairs.append((exchange.agent, chance.choice(exchange.persona)))
    return ScriptedDialogue(chance.choice(script.openings), tuple(pairs))


def segments_of(dialogue: ScriptedDialogue, renderer: Renderer, tokenizer: Tokenizer) -> tuple[Segment, ...]:
    """Tokens as a rollout would have them; the agent's count as sampled."""
    given = renderer.opening(dialogue.opening)
    segments = []
    for agent, persona in dialogue.exchanges:
        said = (*tokenizer.encode(agent, add_special_tokens=False), renderer.end_id)
        segments += [Segment(tuple(given)), Segment(said, logp=(0.0,) * len(said))]
        given = renderer.suffix(persona, ended=True)
    return tuple(segments)


def _rate(step: int, steps: int) -> float:
    """Share of the full learning rate: up over the first tenth, then down along a cosine to next to nothing."""
    rise = max(steps // 10, 1)
    if step < rise:
        return (step + 1) / rise
    return 0.5 * (1.0 + math.cos(math.pi * (step - rise) / max(steps - rise, 1)))


def warm_up(
    policy: Policy, script: Script, tokenizer: Any, settings: WarmupSettings, *, seed: int, now: Now = silent
) -> list[float]:
    """Maximum likelihood on composed dialogues; the loss of each step."""
    renderer = Renderer(tokenizer)
    chance = random.Random(f"warm-up {seed}")  # noqa: S311 - data, no secret
    optimizer = torch.optim.AdamW(policy.model.parameters(), lr=settings.learning_rate, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step, settings.steps))
    losses = []
    for step in range(settings.steps):
        now(f"warm-up: {step} of {settings.steps} steps")
        dialogues = [compose(script, settings.turns, chance) for _ in range(settings.batch)]
        rows = rows_of(
            [segments_of(dialogue, renderer, tokenizer) for dialogue in dialogues],
            tokenizer.pad_token_id,
            policy.device,
        )
        loss = -policy.score(rows).logp.sum() / rows.sampled.sum()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(policy.model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(float(loss.detach()))
    return losses
