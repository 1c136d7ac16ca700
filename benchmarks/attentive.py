"""Scripts for the scripted provider that read what a judge is asked and answer it properly.

They understand the prompts of the LLM judge and of the judge of pairs well enough to give the right ids and quotes
that occur. What they decide is up to a word of the question, so that a test or benchmark knows the result.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from benchmarks.scripted_provider import Asked

Json = Any
REASON = "The conversation shows it."


def questions_of(asked: Asked) -> list[dict[str, str]]:
    """The questions with their ids; empty where the prompt has none."""
    listed = asked.system.partition("The questions:\n")[2]
    return [json.loads(line) for line in listed.splitlines()]


def conversations_of(asked: Asked) -> list[list[dict[str, Any]]]:
    """The turns of each conversation that is shown."""
    return [json.loads(line) for line in asked.user.splitlines() if line.startswith("[{")]


def agent_line(turns: list[dict[str, Any]]) -> tuple[int, str]:
    """The longest agent turn: its number and its words."""
    turn = max((turn for turn in turns if "agent" in turn), key=lambda turn: len(turn["agent"]))
    return turn["turn"], turn["agent"][:250].rpartition(" ")[0] or turn["agent"]


def attentive(is_met: Callable[[str], bool] = lambda question: True, reason: str = REASON) -> Callable[[Asked], Json]:
    """Answers each question of a judge; those that are met quote the agent."""

    def script(asked: Asked) -> Json:
        [turns] = conversations_of(asked)
        number, words = agent_line(turns)
        verdicts = []
        for question in questions_of(asked):
            met = is_met(question["question"])
            place = {"turn": number, "quote": words} if met else {"turn": None, "quote": ""}
            verdicts.append({"id": question["id"], "reason": reason, **place, "met": met})
        return {"verdicts": verdicts}

    return script


def preferring(word: str, reason: str = REASON) -> Callable[[Asked], Json]:
    """Prefers the conversation in which an agent says the word, wherever it is shown."""

    def script(asked: Asked) -> Json:
        for label, turns in zip("XY", conversations_of(asked), strict=True):
            for turn in turns:
                if word in turn.get("agent", ""):
                    return {"reason": reason, "better": label, "turn": turn["turn"], "quote": turn["agent"][:250]}
        return {"reason": reason, "better": "neither", "turn": None, "quote": ""}

    return script
