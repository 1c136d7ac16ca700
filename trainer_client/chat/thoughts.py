"""Thoughts of a policy before it speaks: `<think>...</think>`, which nobody but the model reads.

A template may open the thought itself, at the end of the prompt; the turn then begins inside it.
"""

from __future__ import annotations

import re

OPEN, CLOSE = "<think>", "</think>"
SILENCE = "..."
"""What is heard of a turn that is nothing but thought."""
_THOUGHT = re.compile(rf"{OPEN}.*?(?:{CLOSE}|\Z)", re.DOTALL)


def aloud(text: str, *, opened: bool = False) -> str:
    """A turn without its thoughts; one that does not end is all there is. `opened`: the turn begins inside one."""
    whole = OPEN + text if opened else text
    if OPEN not in whole and CLOSE not in whole:
        return text
    return _THOUGHT.sub("", whole).rpartition(CLOSE)[2].strip() or SILENCE


def first(text: str, *, opened: bool = False) -> str:
    """The thought of a turn before it speaks, ended or not."""
    begun = opened or text.lstrip().startswith(OPEN)
    return text.lstrip().removeprefix(OPEN).partition(CLOSE)[0].strip() if begun else ""


def parted(text: str) -> tuple[str, str]:
    """(thought, what is said) of a turn that a file or a chat shows, which begins with its thought or has none."""
    thought, closed, said = text.partition(CLOSE)
    if not closed:
        return "", text
    return thought.strip().removeprefix(OPEN).strip(), said.lstrip("\n")


def thinking(thought: str) -> str:
    """A thought as most templates write it."""
    return f"{OPEN}\n{thought}\n{CLOSE}\n\n"
