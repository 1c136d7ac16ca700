"""Puts the agent's lines of a recorded conversation to a scenario's persona.

A recorded partner never tells the facts of one of our cases, so no rubric of ours can credit its agent. Here the
persona answers in its place, always in the same way: what is scored is how the recorded agent would have
fared with the first lines it said. Lines that come after the persona has ended the talk are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from personas.case.temperament import Temperament
from personas.hearing.types import AgentTurn
from personas.play.simulator import Simulator
from personas.reading.reader import Reader
from reward_server.transcripts.transcript import Transcript, Turn
from scenarios.library import Vault

SEED = 0


class RecordedAgentPlayer:
    """Plays recorded agents against personas, each with the default temperament of its scenario."""

    def __init__(self, vault: Vault, temperaments: Mapping[str, Temperament], reader: Reader) -> None:
        self._vault = vault
        self._temperaments = temperaments
        self._reader = reader

    def answered(self, collection: str, scenario: str, recorded: Transcript) -> Transcript:
        """The agent's turns with the persona's answers; `KeyError` for an unknown scenario."""
        sealed = self._vault.open(collection, scenario)
        temperament = self._temperaments[sealed.secrets.persona.temperaments[0]]
        simulator = Simulator(sealed.case, temperament, self._reader)
        opening = simulator.open(SEED)
        state, line, turns = opening.state, opening.text, list[Turn]()
        for turn in recorded.turns[: sealed.card.max_turns]:
            reply = simulator.reply(state, AgentTurn(turn.agent, turn.valid_tools), SEED, line)
            turns.append(replace(turn, persona=reply.text))
            state, line = reply.state, reply.text
            if reply.ended is not None:
                break
        return Transcript(opening.text, tuple(turns))
