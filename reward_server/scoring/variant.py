"""Which variant of its scenario a conversation is about: what its persona said tells, so nothing else need be known."""

from __future__ import annotations

from reward_server.transcripts.transcript import Transcript
from scenarios.library import SealedScenario, Vault


def heard_in(vault: Vault, collection: str, scenario: str, transcript: Transcript) -> SealedScenario:
    """The variant that a transcript is about; `KeyError` for an unknown scenario."""
    return vault.heard(
        collection, scenario, transcript.opening or "", (turn.persona or "" for turn in transcript.turns)
    )
