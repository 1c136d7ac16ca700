"""The last check before a persona's line leaves: it holds nothing that was not chosen to be said.

The simulator cannot leak by construction, for it only words facts chosen for disclosure; this guard catches a
case file whose harmless lines give a fact away, and any defect of the simulator itself.
"""

from __future__ import annotations

from collections.abc import Container

from personas.case.compiled import CompiledCase
from personas.hearing.state import PersonaState
from personas.text.sentences import sentences
from personas.text.wording import grams, normal


class LeakError(RuntimeError):
    """A line would have told what the persona may not tell. Carries no text of the case."""


def check_reply(case: CompiledCase, state_after: PersonaState, text: str) -> None:
    """Raises `LeakError` if the line is empty or holds a wording of a fact that is not among the said ones."""
    if not text.strip():
        raise LeakError("the persona's line is empty")
    if gives_away(case, state_after.said, text):
        raise LeakError("the persona's line holds a fact it may not tell")


def gives_away(case: CompiledCase, said: Container[str], text: str) -> bool:
    """Whether a text holds a wording of a fact that is not among the said ones."""
    line = normal(text)
    reply_grams = frozenset[str]().union(*(grams(sentence) for sentence in sentences(text)))
    return any(
        any(wording in line for wording in topic.normals) or not topic.protected.isdisjoint(reply_grams)
        for topic in case.topics
        if topic.id not in said
    )
