"""A conversation as pages show it: what both said, turn by turn, with what each turn earned.

Of episodes and of evaluations alike. What it holds went through `access.for_key`: it is what this key may see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reward_server.access import for_key
from reward_server.console.visit import Visit
from reward_server.store.records import TurnRow

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCallView:
    """A tool call of the agent, and what the server said to it."""

    name: str
    input: Json
    error: str | None = None


@dataclass(frozen=True, slots=True)
class TurnView:
    """An agent turn and the persona's answer to it."""

    number: int
    agent: str
    calls: Sequence[ToolCallView]
    persona: str | None
    reward: float | None = None
    delta: float | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    breakdown: Mapping[str, str] = field(default_factory=dict)
    capped_by: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ConversationView:
    """All of it."""

    opening: str
    turns: Sequence[TurnView]

    @property
    def reward(self) -> float | None:
        """That of the last turn that has one."""
        return next((turn.reward for turn in reversed(self.turns) if turn.reward is not None), None)

    @property
    def last(self) -> TurnView | None:
        """The last turn."""
        return self.turns[-1] if self.turns else None

    @property
    def dimensions(self) -> list[str]:
        """Of the rubric, as far as anything was scored."""
        return list(dict.fromkeys(name for turn in self.turns for name in turn.scores))

    def plot(self) -> Json:
        """The reward and the dimensions, turn by turn, for the line beside it; it begins with nothing earned."""
        scored = [turn for turn in self.turns if turn.reward is not None]
        lines = [{"name": "reward", "values": [0.0, *(turn.reward for turn in scored)]}]
        lines += [
            {"name": name, "values": [None, *(turn.scores.get(name) for turn in scored)]} for name in self.dimensions
        ]
        return {"kind": "line", "x": [0, *(turn.number for turn in scored)], "lines": lines, "unit": "turn"}

    def words(self) -> int:
        """The number of words that the agent said."""
        return sum(len(turn.agent.split()) for turn in self.turns)


async def of_episode(visit: Visit, body: Json) -> ConversationView:
    """The conversation of an episode that this visitor was given by `EpisodeService.get`."""
    async with visit.services.store.reading() as unit:
        rows = await unit.episodes.turns(visit.lab.lab_id, body["episode_id"])
    return ConversationView(body["messages"][0]["content"], [_turn(visit, row) for row in rows])


def of_messages(messages: Sequence[Json], agent_role: str) -> ConversationView:
    """The conversation of messages that a client sent to be scored."""
    spoken = [each for each in messages if each["role"] in ("user", "assistant")]
    opening: list[str] = []
    turns: list[TurnView] = []
    for message in spoken:
        text = message.get("content") or ""
        if message["role"] == agent_role:
            turns.append(TurnView(len(turns) + 1, text, _calls(message), None))
        elif not turns:
            opening.append(text)
        else:
            last = turns[-1]
            said = text if last.persona is None else f"{last.persona}\n{text}"
            turns[-1] = TurnView(last.number, last.agent, last.calls, said)
    return ConversationView("\n".join(opening), turns)


def scored_at_the_end(talk: ConversationView, answer: Json) -> ConversationView:
    """A conversation that was scored as a whole: what it came to stands at its last turn."""
    if not talk.turns:
        return talk
    last = replace(
        talk.turns[-1],
        reward=answer["reward"],
        scores=answer.get("scores", {}),
        breakdown=answer.get("score_breakdown", {}),
        capped_by=answer.get("capped_by", ()),
    )
    return ConversationView(talk.opening, [*talk.turns[:-1], last])


def _turn(visit: Visit, row: TurnRow) -> TurnView:
    answer = for_key(visit.lab, row.answer)
    errors = {each["name"]: each["message"] for each in answer.get("tool_errors", ())}
    is_scored = "scores" in answer or row.scores is not None or row.reward > 0
    return TurnView(
        number=row.turn,
        agent=row.agent_content,
        calls=_calls({"tool_calls": row.tool_calls}, errors),
        persona=row.observation,
        reward=row.reward if is_scored else None,
        delta=answer.get("reward_delta") if is_scored else None,
        scores=answer.get("scores", {}),
        breakdown=answer.get("score_breakdown", {}),
        capped_by=answer.get("capped_by", ()),
    )


def _calls(message: Json, errors: Mapping[str, str] | None = None) -> list[ToolCallView]:
    known = errors or {}
    found = message.get("tool_calls") or ()
    return [ToolCallView(each["name"], each.get("input") or {}, known.get(each["name"])) for each in found]
