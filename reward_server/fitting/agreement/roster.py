"""The judges of this machine: the embedded ones, the language model, the active reward model, plug-ins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reward_server.errors import InvalidRequest
from reward_server.fitting.agreement.scores import MeasuredJudges
from reward_server.judges.base import Judge
from reward_server.judges.estimate import ConversationJudge
from reward_server.judges.local import LocalJudge
from reward_server.judges.rule import RuleJudge
from reward_server.judges.state import StateJudge
from reward_server.scoring.compose import RUBRIC
from reward_server.server.engine import OfflineEngine
from scenarios.spelling import meant

WHOLE = "whole conversations"
YES, NO, PER_ANSWER = "yes", "no", "per answer"


@dataclass(frozen=True)
class RosterEntry:
    """A judge as `labs judges list` shows it."""

    name: str
    version: str
    decides: str
    """The kinds of checks, or whole conversations."""
    uncertainty: str
    """Whether its answers say how sure they are: `yes`, `no`, or `per answer`, where each answer may or may not."""


def seats(engine: OfflineEngine, llm_samples: int) -> list[RosterEntry]:
    """Everybody who can be heard here, in a fixed order."""
    plugins = engine.guests.plugins
    embedded: list[Judge] = [StateJudge(), RuleJudge(), LocalJudge(engine.matcher)]
    exact = [_criteria(judge, NO) for judge in embedded]
    asked = [_criteria(judge, YES if judge.name != "llm" or llm_samples > 1 else NO) for judge in engine.guests.asked]
    added = [_criteria(judge, PER_ANSWER) for judge in (*plugins.computed, *plugins.asked)]
    whole = [
        RosterEntry(name, judge.version, WHOLE, _of_a_whole(judge))
        for name, judge in engine.guests.conversation_judges().items()
    ]
    own = NO if all(entry.uncertainty == NO for entry in (*asked, *added)) else PER_ANSWER
    rubric = RosterEntry(RUBRIC, engine.scorer.scoring_version, "the reward of a scenario's rubric", own)
    return [rubric, *exact, *asked, *added, *whole]


def chosen(entries: Sequence[RosterEntry], names: Sequence[str]) -> MeasuredJudges:
    """The judges of these names.

    Raises:
        InvalidRequest: a name that nobody here has, or one twice.
    """
    known = {seat.name: seat for seat in entries}
    for name in names:
        if name not in known:
            hint = " (set LABS_LLM_PROVIDER and LABS_LLM_MODEL)" if name == "llm" else ""
            hint = " (none is active: ./labs reward-model activate)" if name == "reward_model" else hint
            told = f"There is no judge {name[:40]!r} here{hint}: there are {', '.join(known)}."
            raise InvalidRequest(told + meant(name, known))
    if len(set(names)) < len(names):
        raise InvalidRequest("Name each judge once.")
    whole = tuple(name for name in names if known[name].decides == WHOLE)
    return MeasuredJudges(tuple(name for name in names if name not in whole), whole)


def _of_a_whole(judge: ConversationJudge) -> str:
    """A learned model knows beforehand; what a plug-in will say, nobody does."""
    knows = getattr(judge, "states_uncertainty", None)
    return PER_ANSWER if knows is None else YES if knows else NO


def _criteria(judge: Judge, uncertainty: str) -> RosterEntry:
    return RosterEntry(judge.name, judge.version, ", ".join(sorted(judge.kinds)), uncertainty)
