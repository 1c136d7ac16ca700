"""Breakdown for a key with full score access: each dimension's strength, and the turns in which it moved.

Scrubbed by construction: it is written from scores and turn numbers alone, so it can hold no criterion,
no id, no count of criteria, no fact and no words of the conversation.
"""

from __future__ import annotations

from collections.abc import Sequence

from reward_server.scoring.scored import Moments, Scored

_STRENGTHS = ((0.85, "Very strong"), (0.6, "Strong"), (0.35, "Mixed"), (0.1, "Weak"), (0.0, "Very weak"))


def breakdown(scored: Scored) -> dict[str, str]:
    """One short text per dimension."""
    return {name: _text(score, scored.moments.get(name, Moments())) for name, score in scored.scores.items()}


def _text(score: float, moments: Moments) -> str:
    strength = next(word for least, word in _STRENGTHS if score >= least)
    moved = [
        f"{verb} in {_turns(turns)}" for verb, turns in (("gained", moments.gained), ("lost", moments.lost)) if turns
    ]
    return f"{strength}; {', '.join(moved)}." if moved else f"{strength}."


def _turns(turns: Sequence[int]) -> str:
    return f"turn {turns[0]}" if len(turns) == 1 else f"turns {', '.join(map(str, turns))}"
