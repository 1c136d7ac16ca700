"""Two example judges: `jargon` decides a check of a rubric, `brevity` puts a number on a whole conversation.

Both are pure functions of the conversation, as every judge must be: no clock, no random numbers, no state.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from reward_server.judges.base import Case, Evidence, Finding
from reward_server.judges.estimate import Estimate
from scenarios.schema import Criterion

LONG_TURN = 60
"""Words that fit into a spoken turn."""


class Jargon:
    """`plugin: {name: jargon, options: {words: […]}}`: met where the agent uses one of the words."""

    version = "1"

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Refuses, when the server starts, options that a scenario gives and that make no sense."""
        words = options.get("words")
        if set(options) != {"words"} or not isinstance(words, list) or not words:
            raise ValueError("give `words`, a list")
        if not all(isinstance(word, str) and word.strip() for word in words):
            raise ValueError("`words` are texts")

    def decide(self, case: Case, criterion: Criterion) -> Finding | None:
        """A `Finding` shows where it was found; None would abstain."""
        check = criterion.check.plugin
        if check is None:
            return None
        words = "|".join(re.escape(word) for word in check.options["words"])
        for number, turn in enumerate(case.transcript.turns, start=1):
            found = re.search(rf"\b(?:{words})\b", turn.agent, re.IGNORECASE)
            if found:
                return Finding(1.0, (Evidence(number, "agent", found.group()),))
        return Finding(0.0)


class Brevity:
    """The share of the agent's turns that are short enough to be listened to."""

    version = "1"
    reads_record = False
    """It looks at the text alone, so nothing has to be replayed for it."""

    def estimate(self, cases: Sequence[Case]) -> list[Estimate]:
        """One estimate per case; how sure it is of itself, it does not know."""
        return [Estimate(_share_of_short_turns(case)) for case in cases]


def _share_of_short_turns(case: Case) -> float:
    turns = case.transcript.turns
    return sum(len(turn.agent.split()) <= LONG_TURN for turn in turns) / len(turns)
