"""Conversations of scripted agents with the packaged personas, in the shape in which clients send them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from personas.case.library import load_temperaments
from personas.hearing.types import AgentTurn
from personas.play.simulator import Simulator
from personas.reading.reader import Reader
from reward_server.scoring.config import RewardConfig
from reward_server.scoring.request import ScoreRequest
from reward_server.scoring.scorer import Scorer
from reward_server.transcripts.transcript import valid_tool_ids
from scenarios.library import Library, SealedScenario
from scenarios.schema import NaturalAgents, ScriptStep
from trainer_client.wire import Message, ToolCall

Json = dict[str, Any]
Talk = list[Json]
"""Messages, agent as assistant, in order; the first is the persona's opening."""
SEED = 5


@dataclass(frozen=True)
class Base:
    """A conversation as it was played."""

    scenario: SealedScenario
    agent: str
    messages: Talk = field(repr=False)


def played(
    scenario: SealedScenario, agent: str, script: Sequence[ScriptStep], reader: Reader, seed: int = SEED
) -> Base:
    """A script against the scenario's first temperament."""
    simulator = Simulator(scenario.case, load_temperaments()[scenario.secrets.persona.temperaments[0]], reader)
    opening = simulator.open(seed)
    state, line = opening.state, opening.text
    messages: Talk = [{"role": "user", "content": line}]
    for step in script:
        tools = valid_tool_ids([ToolCall.model_validate(call) for call in step.tools], scenario.card.tools)
        messages.append({"role": "assistant", "content": step.say, "tool_calls": list(step.tools) or None})
        reply = simulator.reply(state, AgentTurn(step.say, tools), seed, line)
        state, line = reply.state, reply.text
        messages.append({"role": "user", "content": line})
        if reply.ended is not None:
            break
    return Base(scenario, agent, messages)


def all_scenarios(library: Library) -> Iterator[SealedScenario]:
    """Every packaged scenario, opened."""
    for collection, slug in library.vault.names():
        yield library.vault.open(collection, slug)


def bases(
    scenario: SealedScenario,
    reader: Reader,
    natural: NaturalAgents | None = None,
    agents: Collection[str] | None = None,
) -> list[Base]:
    """The oracle's conversation and its first half, and those of the natural agents; all of them, or of some agents."""
    oracle = scenario.secrets.exam.oracle
    scripts = {"oracle": oracle, "half": oracle[: max(2, len(oracle) // 2)]}
    if natural is not None:
        scripts |= {"excellent": natural.excellent, "ok": natural.ok, "poor": natural.poor}
    chosen = scripts if agents is None else [name for name in scripts if name in agents]
    return [played(scenario, name, scripts[name], reader) for name in chosen]


def request_of(scorer: Scorer, scenario: SealedScenario, talk: Talk, config: RewardConfig) -> ScoreRequest:
    """A conversation as it is scored."""
    where = scenario.collection, scenario.card.slug
    read = scorer.read(*where, [Message.model_validate(message) for message in talk], "assistant")
    return ScoreRequest(*where, read, config)
