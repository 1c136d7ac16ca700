"""The persona's memory survives storage."""

from __future__ import annotations

import json

from personas.hearing.state import PersonaState
from tests.personas.cast import Play


def test_a_played_state_survives_json() -> None:
    play = Play()
    script = (
        "I'm so sorry to hear that. What about the alcohol?",
        "I will book an MRI scan of your knee.",
        "You should stop taking the tablets.",
        "Goodbye.",
    )
    for text in script:
        play.say(text, "referral")
    assert PersonaState.from_json(json.loads(json.dumps(play.state.to_json()))) == play.state


def test_the_state_holds_no_line_of_the_conversation() -> None:
    play = Play()
    play.say("What about the tablets?")
    assert "naproxen" not in json.dumps(play.state.to_json())
