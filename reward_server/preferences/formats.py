"""A pair as a line of the file that a trainer reads.

- `trl`: explicit prompt, conversational. Also what `learner train` with `dpo` reads.
- `openrlhf`: for `--prompt_key prompt --chosen_key chosen --rejected_key rejected --apply_chat_template`.
- `openai`: preference fine-tuning. It takes one agent message a side, so the conversations are cut after the message
  at which they part, and tools cannot be told.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

from reward_server.preferences.dialogue import NotAPair
from reward_server.preferences.pairs import PreferencePair

JsonObject = dict[str, Any]


class Format(StrEnum):
    """The trainer whose file it is."""

    TRL = "trl"
    OPENRLHF = "openrlhf"
    OPENAI = "openai"


def _explicit(pair: PreferencePair) -> JsonObject:
    row: JsonObject = {"prompt": pair.prompt, "chosen": pair.chosen, "rejected": pair.rejected}
    return row if pair.margin is None else {**row, "margin": pair.margin}


def _openai(pair: PreferencePair) -> JsonObject:
    if any("tool_calls" in message for message in [*pair.prompt, pair.chosen[0], pair.rejected[0]]):
        raise NotAPair("tool_calls")
    return {
        "input": {"messages": pair.prompt, "tools": [], "parallel_tool_calls": True},
        "preferred_output": pair.chosen[:1],
        "non_preferred_output": pair.rejected[:1],
    }


_ROWS: dict[Format, Callable[[PreferencePair], JsonObject]] = {
    Format.TRL: _explicit,
    Format.OPENRLHF: _explicit,
    Format.OPENAI: _openai,
}


def row_of(pair: PreferencePair, chosen: Format, *, provenance: bool) -> JsonObject:
    """The line of a pair.

    Raises:
        NotAPair: the format cannot hold it.
    """
    row = _ROWS[chosen](pair)
    if not provenance:
        return row
    # Where the format has no place for the margin it goes with the rest.
    told = pair.provenance if "margin" in row or pair.margin is None else pair.provenance | {"margin": pair.margin}
    return {**row, "provenance": told}
