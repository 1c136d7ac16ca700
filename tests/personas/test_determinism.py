"""The same seed and messages give the same bytes, in any process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from personas.case.library import load_temperaments
from tests.personas.cast import Play

SCRIPT = """
from tests.personas.test_determinism import transcript
import sys
sys.stdout.buffer.write(transcript().encode())
"""
ROOT = Path(__file__).parents[2]


def transcript() -> str:
    """Episodes of every temperament with several seeds, as text."""
    turns = (
        "Hello there. Tell me what happened.",
        "I'm so sorry to hear that. What about the popping noise? What about the alcohol?",
        "What about the popping noise?",
        "What about the dosage? What is the capital of Norway?",
        "Okay.",
        "You're an idiot.",
        "I will book an MRI scan of your knee.",
    )
    lines: list[str] = []
    for slug in sorted(load_temperaments()):
        for seed in (-1, 0, 1, 2**63):
            play = Play(slug, seed)
            lines.append(play.opening)
            for turn in turns:
                reply = play.say(turn)
                lines += [reply.text, str(reply.disclosed), str(play.state.to_json())]
                if reply.ended:
                    break
    return "\n".join(lines)


def test_replies_are_byte_identical_under_another_hash_seed() -> None:
    here = transcript()
    for hash_seed in ("1", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT], cwd=ROOT, env=environment, capture_output=True, check=True, timeout=120
        )
        assert run.stdout.decode() == here


def test_different_seeds_speak_differently() -> None:
    said = {Play(seed=seed).say("Hello there. What about the popping noise?").text for seed in range(12)}
    assert len(said) > 3
