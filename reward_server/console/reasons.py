"""The reasons of a reward for whoever may read them, and what judges cited, marked where it was said."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from reward_server.console.visit import Visit
from reward_server.errors import LabsError
from reward_server.scoring.insight import Insight
from trainer_client.wire import Message, Role

Json = dict[str, Any]
Quotes = Mapping[tuple[str, int], Sequence[str]]
LEAST_QUOTE = 3
"""Characters: shorter ones would be marked in the middle of other words."""


@dataclass(frozen=True, slots=True)
class Reasons:
    """The reasons that were found, or why there are none."""

    insight: Insight | None
    problem: str = ""

    @property
    def quotes(self) -> Quotes:
        """(party, turn) -> what was cited."""
        return {} if self.insight is None else self.insight.quotes


@dataclass(frozen=True, slots=True)
class CitedText:
    """A part of a text; whether a judge cited it."""

    text: str
    is_cited: bool


NO_REASONS = Reasons(None)


async def reasons_of(
    visit: Visit, body: Json, messages: Sequence[Json], agent_role: str, config: Json | None
) -> Reasons:
    """The reasons of an episode or an evaluation that this visitor was given."""
    is_author = visit.wrote(body["collection_slug"])
    if not (visit.sees_why or is_author) or not any(each["role"] == agent_role for each in messages):
        return NO_REASONS
    try:
        insight = await visit.services.insights.of(
            body["collection_slug"],
            body["scenario_slug"],
            [Message.model_validate(each) for each in messages],
            cast(Role, agent_role),
            config,
            lab_id=visit.lab.lab_id,
            named=is_author,
        )
    except LabsError as error:
        return Reasons(None, error.message)
    return Reasons(insight)


def marked(text: str, quotes: Sequence[str]) -> list[CitedText]:
    """The text in pieces, those that were cited apart; quotes are found whatever their white space and case."""
    spans = sorted(span for quote in quotes for span in _spans(text, quote))
    pieces: list[CitedText] = []
    at = 0
    for start, stop in spans:
        if stop <= at:
            continue
        begin = max(start, at)
        pieces += [CitedText(text[at:begin], False)] * (begin > at) + [CitedText(text[begin:stop], True)]
        at = stop
    return [*pieces, CitedText(text[at:], False)] if at < len(text) else pieces


def _spans(text: str, quote: str) -> list[tuple[int, int]]:
    words = quote.split()
    if sum(map(len, words)) < LEAST_QUOTE:
        return []
    pattern = r"\s+".join(map(re.escape, words))
    return [found.span() for found in re.finditer(pattern, text, re.IGNORECASE)]
