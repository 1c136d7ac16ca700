"""Plays a scripted agent against the simulator, and watches every reply for leaks.

The transcript comes out in the shape a client would send, so that it is scored through the one scoring path.
The leak watch does not trust the simulator's own account: it compares every line with every fact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from personas.case.compiled import contains
from personas.case.schema import Needs, Tier, all_hold
from personas.case.temperament import Temperament
from personas.hearing.state import PersonaState
from personas.hearing.types import AgentTurn
from personas.play.guard import LeakError, check_reply
from personas.play.simulator import Reply, Simulator
from personas.reading.reader import Reader
from personas.text.wording import normal
from reward_server.transcripts.transcript import valid_tool_ids
from scenarios.exam import ExamTurn, ScriptedAgent
from scenarios.library import SealedScenario
from trainer_client.wire import ToolCall


@dataclass(frozen=True)
class ElicitedFact:
    """A fact that the agent drew out."""

    fact: str
    words: str
    """The agent's."""


@dataclass(frozen=True)
class Play:
    """One conversation of the exam."""

    agent: str
    temperament: str
    seed: int
    messages: tuple[Mapping[str, Any], ...] = field(repr=False)
    ended: bool
    leaks: tuple[str, ...]
    """What was told that was closed: `turn n: fact id (why)`."""
    told: tuple[ElicitedFact, ...] = field(repr=False)
    final_state: Mapping[str, Any] = field(repr=False)

    @property
    def turns(self) -> int:
        """Agent turns played."""
        return sum(message["role"] == "assistant" for message in self.messages)


def play(scenario: SealedScenario, temperament: Temperament, agent: ScriptedAgent, reader: Reader, seed: int) -> Play:
    """Play until the agent, the persona or the turn limit ends the talk."""
    simulator = Simulator(scenario.case, temperament, reader)
    opening = simulator.open(seed)
    state, heard = opening.state, opening.text
    messages: list[Mapping[str, Any]] = [{"role": "user", "content": heard}]
    found = leaks(scenario, PersonaState(), opening.state, heard, 0)
    told: list[ElicitedFact] = []
    ended = False
    for turn in range(scenario.card.max_turns):
        act = agent.act(turn, heard)
        if act is None:
            break
        messages.append(_message(act))
        before = state
        try:
            reply: Reply = simulator.reply(before, AgentTurn(act.say, _valid_tools(scenario, act)), seed, heard)
        except LeakError as error:
            found.append(f"turn {turn + 1}: {error}")
            break
        # Through JSON, as an episode keeps it between turns.
        state, heard = PersonaState.from_json(reply.state.to_json()), reply.text
        messages.append({"role": "user", "content": heard})
        told += [ElicitedFact(name, act.say) for name in reply.disclosed if scenario.case.by_id[name].creditable]
        found += leaks(scenario, before, state, heard, turn + 1)
        if reply.ended is not None:
            ended = True
            break
    return Play(agent.name, temperament.slug, seed, tuple(messages), ended, tuple(found), tuple(told), state.to_json())


def _message(act: ExamTurn) -> Mapping[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": act.say}
    if act.tools:
        message["tool_calls"] = [dict(call) for call in act.tools]
    return message


def _valid_tools(scenario: SealedScenario, act: ExamTurn) -> tuple[str, ...]:
    return valid_tool_ids([ToolCall.model_validate(call) for call in act.tools], scenario.card.tools)


def leaks(scenario: SealedScenario, before: PersonaState, after: PersonaState, text: str, turn: int) -> list[str]:
    """Facts in a line that were closed when it was said."""
    found: list[str] = []
    try:
        check_reply(scenario.case, after, text)
    except LeakError as error:
        found.append(f"turn {turn}: {error}")
    line = normal(text)
    for topic in scenario.case.topics:
        told = contains(topic, line)
        if told and topic.id not in after.said:
            found.append(f"turn {turn}: `{topic.id}` was told, but is not recorded as said")
        if topic.id in after.said and topic.id not in before.said and topic.tier is not Tier.VOLUNTEERED:
            reason = _closed(topic.tier, topic.gate.requires, topic.gate.after_turn, before, turn)
            if reason is None and topic.tier is Tier.RAPPORT and after.rapport < topic.gate.rapport:
                reason = "rapport"
            if reason:
                found.append(f"turn {turn}: `{topic.id}` was told while it was closed ({reason})")
    return found


def _closed(tier: Tier, requires: Needs, after_turn: int, before: PersonaState, turn: int) -> str | None:
    if tier is Tier.UNKNOWN:
        return "the persona cannot know it"
    if not all_hold(requires, before.said):
        return "requires"
    return "after_turn" if turn <= after_turn else None
