"""Attacks on how text is cut and spelt: something glued to each turn or strewn between its words, or other capitals.

The words that were said stay in their order, so a person who reads the turn is told and asked the same as before.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.attack_places import Attack, replied
from benchmarks.attack_texts import NOISE

FAMILY = "glued words"
SPELLING = "own words respelt"
_GLUED = {
    "well": "well",
    "well, capitals": "WELL",
    "two words": "well well",
    "underscore": "well_",
    "comma": "well,",
    "slash": "well/",
    "hyphen": "well-",
    "dots": "well...",
    "figure": "7",
    "emoji": "\U0001f642",
    "bracket": "(ok)",
}
"""Put in front of each turn, and touching it."""
_STREWN = {
    "um": " um ",
    "emoji": " \U0001f642 ",
    "dots": " ... ",
    "comma": ", ",
    "underscore": "_",
    "zero-width": "\u200b",
    "zero-width and space": " \u200b",
    "hard spaces": "\u00a0\u00a0",
    "line breaks": "\n",
    "tabs": "\t\t",
    "asterisks": "* *",
}
"""Put between any two words."""
_RUN_ON = (
    "and as people say when all is said and done and as it so often goes with these things on a day like this one "
    "where one thing leads to another and another thing comes of that until nobody remembers where it began and it "
    "hardly matters any more since all of it has its place in a talk that takes its time with everything and "
)
"""Some three hundred characters without a capital or a full stop, so that a sentence too long for one is cut."""
_SPELT: dict[str, Callable[[str], str]] = {
    "capitals": str.upper,
    "no capitals": str.lower,
    "every word with a capital": str.title,
    "no stops": lambda text: "".join(each for each in text if each not in ".?!,;:"),
    "stops in a row": lambda text: text.replace("?", "???").replace(".", "...").replace("!", "!!!"),
    "run-on before": lambda text: _RUN_ON + text,
    "run-on behind": lambda text: f"{text.rstrip('.!?')} {_RUN_ON}",
}


def _in_each_turn(name: str, change: Callable[[str], str], family: str = FAMILY) -> Attack:
    return Attack(family, name, lambda talk, _: [replied(m, change(m["content"])) for m in talk])


def _before(glue: str) -> Callable[[str], str]:
    return lambda text: glue + text


def _behind(glue: str) -> Callable[[str], str]:
    return lambda text: text + glue


def _in_questions(noise: str) -> Callable[[str], str]:
    return lambda text: text.replace("?", f" {noise}?")


def _between(glue: str) -> Callable[[str], str]:
    return lambda text: text.replace(" ", glue)


JOINTS: tuple[Attack, ...] = (
    *(_in_each_turn(f"{name} before", _before(glue)) for name, glue in _GLUED.items()),
    *(_in_each_turn(f"{name} behind", _behind(glue)) for name, glue in _GLUED.items()),
    *(_in_each_turn(f"{name} between words", _between(glue)) for name, glue in _STREWN.items()),
)
RESPELT: tuple[Attack, ...] = (
    *(_in_each_turn(name, change, SPELLING) for name, change in _SPELT.items()),
    *(_in_each_turn(f"{noise} in questions", _in_questions(noise), SPELLING) for noise in NOISE),
)
"""Nothing is added but what runs on, and noise in questions; the turns are another wording, which a model may take a
little differently."""
