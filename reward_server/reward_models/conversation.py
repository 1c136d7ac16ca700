"""A conversation as learned models see it: marked turns and the scenario they were played in.

The same form at training time and in service, whatever the conversation came from.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Literal

Party = Literal["agent", "persona"]
Reads = Literal["answers", "words"]
"""What an agent earns by with a learned judge, where there is a scenario: the answers it got (its own words only cost),
or its words, too."""


@dataclass(frozen=True, slots=True)
class ConversationMessage:
    """One message."""

    party: Party
    text: str


@dataclass(frozen=True, slots=True, repr=False)
class Conversation:
    """The messages in order, with who said each, and the scenario."""

    turns: tuple[ConversationMessage, ...]
    scenario: str = ""
    """The public name and description of the scenario; empty where there is none."""

    def __repr__(self) -> str:
        return f"<Conversation: {len(self.turns)} messages>"

    @property
    def digest(self) -> str:
        """A hash of everything in it, by which equal conversations are known, and no others: texts may hold anything.

        Artefacts keep such hashes (`known_rows.ROWS`): whoever changes this gives that file another name.
        """
        said = json.dumps([self.scenario, *((said.party, said.text) for said in self.turns)], ensure_ascii=False)
        return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()
