"""Scripted dialogues that a fresh policy is warmed up on, before any reward.

A script is a list of exchanges written by hand: a line of the agent, good or bad, and what a
persona might answer. Dialogues are composed from them at random, some better, most worse, so the
warmed-up policy speaks in whole sentences and knows no plan. It copies the scripted agent's tokens
by maximum likelihood; the persona's are context.
"""

from __future__ import annotations

import importlib.resources
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from learner.model import Policy, rows_of
from learner.tokens import Renderer, Tokenizer
from learner.types import Segment

KINDS = ("good", "plan", "idle", "chatter", "rude", "premature")


@dataclass(frozen=True)
class Exchange:
    """A line of the agent, and what a persona might answer."""

    kind: str
    agent: str
    persona: tuple[str, ...]


@dataclass(frozen=True)
class Script:
    """What dialogues are composed of."""

    collection: str
    scenario: str
    openings: tuple[str, ...]
    farewells: tuple[str, ...]
    exchanges: tuple[Exchange, ...]

    def texts(self) -> list[str]:
        """Every line, for the vocabulary."""
        spoken = [line for exchange in self.exchanges for line in (exchange.agent, *exchange.persona)]
        return [*self.openings, *self.farewells, *spoken]


@dataclass(frozen=True)
class Dialogue:
    """An opening, then lines of the agent with the answers between them."""

    opening: str
    exchanges: tuple[tuple[str, str], ...]
    """(agent, persona) pairs; the last answer is never read by anyone."""


@dataclass(frozen=True)
class WarmupSettings:
    """How long and how hard."""

    steps: int = 300
    batch: int = 16
    turns: int = 8
    learning_rate: float = 3e-3
    weights: tuple[tuple[str, float], ...] = tuple((kind, 1.0) for kind in KINDS)
    """How often each kind of line comes up, relative to its number of lines."""


def load_script(name: str) -> Script:
    """A script by the name of one shipped here, or by path."""
    path = Path(name)
    if path.suffix == ".json":
        text = path.read_text()
    else:
        shipped = importlib.resources.files("learner") / "data" / f"{name}.json"
        if not shipped.is_file():
            raise ValueError(f"no scripted dialogues called {name!r} are shipped; give the path of a .json file")
        text = shipped.read_text()
    return _read_script(json.loads(text))


def _read_script(content: Mapping[str, Any]) -> Script:
    exchanges = tuple(
        Exchange(kind=item["kind"], agent=item["agent"], persona=tuple(item["persona"]))
        for item in content["exchanges"]
    )
    for exchange in exchanges:
        if exchange.kind not in KINDS or not exchange.persona:
            raise ValueError(f"an exchange needs a kind of {', '.join(KINDS)}, and an answer: {exchange.agent!r}")
    return Script(
        collection=content["collection"],
        scenario=content["scenario"],
        openings=tuple(content["openings"]),
        farewells=tuple(content["farewells"]),
        exchanges=exchanges,
    )


def compose(script: Script, settings: WarmupSettings, chance: random.Random) -> Dialogue:
    """One dialogue: lines in any order, some said twice, as somebody would who has no plan."""
    weight = dict(settings.weights)
    weights = [weight.get(exchange.kind, 0.0) for exchange in script.exchanges]
    chosen = chance.choices(script.exchanges, weights, k=settings.turns)
    pairs = tuple((exchange.agent, chance.choice(exchange.persona)) for exchange in chosen)
    return Dialogue(chance.choice(script.openings), pairs)


def segments_of(dialogue: Dialogue, renderer: Renderer, tokenizer: Tokenizer) -> tuple[Segment, ...]:
    """Tokens as a rollout would have them; the agent's count as sampled."""
    given = renderer.opening(dialogue.opening)
    segments = []
    for agent, persona in dialogue.exchanges:
        said = (*tokenizer.encode(agent, add_special_tokens=False), renderer.end_id)
        segments += [Segment(tuple(given)), Segment(said, logp=(0.0,) * len(said))]
        given = renderer.suffix(persona, ended=True)
    return tuple(segments)


def warm_up(policy: Policy, script: Script, tokenizer: Any, settings: WarmupSettings, *, seed: int) -> list[float]:
    """Maximum likelihood on composed dialogues; the loss of each step."""
    renderer = Renderer(tokenizer)
    chance = random.Random(f"warm-up {seed}")  # noqa: S311 - data, no secret
    optimizer = torch.optim.AdamW(policy.model.parameters(), lr=settings.learning_rate, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=settings.learning_rate, total_steps=settings.steps, pct_start=0.1
    )
    losses = []
    for _ in range(settings.steps):
        dialogues = [compose(script, settings, chance) for _ in range(settings.batch)]
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


def lines_of(script: Script, kinds: Sequence[str] = KINDS) -> list[str]:
    """The agent's lines of these kinds."""
    return [exchange.agent for exchange in script.exchanges if exchange.kind in kinds]
