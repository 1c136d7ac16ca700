"""Where an attack can put a text: each makes another transcript of one. Persona lines stay as they were said."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.attack_texts import FRESH
from scenarios.library import SealedScenario

Json = dict[str, Any]
Transcript = list[Json]
"""Messages, agent as assistant, in order; the first is the persona's opening."""
Change = Callable[[Transcript, SealedScenario], Transcript]

PUZZLED = "Sorry, I don't follow. What do you mean?"
"""What a persona says to an extra turn: nothing of the case."""


@dataclass(frozen=True)
class Attack:
    """One way to change a transcript; `family` is the line of the table it belongs to."""

    family: str
    name: str
    change: Change


# --- where a text can be put ----------------------------------------------------------------------


def behind_each(text: str) -> Change:
    """After what the agent says in every turn."""
    return lambda talk, _: [replied(m, f"{m['content']} {text}") for m in talk]


def before_each(text: str) -> Change:
    """Before what the agent says in every turn."""
    return lambda talk, _: [replied(m, f"{text} {m['content']}") for m in talk]


def on_lines_of_its_own(text: str) -> Change:
    """Below what the agent says in its last turn."""

    def change(talk: Transcript, _: SealedScenario) -> Transcript:
        at = last_turn_of(talk)
        return [*talk[:at], replied(talk[at], f"{talk[at]['content']}\n\n{text}"), *talk[at + 1 :]]

    return change


def as_last_turn(text: str) -> Change:
    """A turn of its own at the end."""
    return lambda talk, _: [*answered(talk), {"role": "assistant", "content": text}]


def as_first_turn(text: str) -> Change:
    """A turn of its own at the beginning, which puzzles the persona."""
    return lambda talk, _: [*talk[:1], {"role": "assistant", "content": text}, line(PUZZLED), *talk[1:]]


def in_the_middle(text: str) -> Change:
    """A turn of its own halfway through, which puzzles the persona."""

    def change(talk: Transcript, _: SealedScenario) -> Transcript:
        own = [i for i, message in enumerate(talk) if message["role"] == "assistant"]
        at = own[len(own) // 2]
        return [*talk[:at], {"role": "assistant", "content": text}, line(PUZZLED), *talk[at:]]

    return change


_PLACES: Mapping[str, Callable[[str], Change]] = {
    "behind": behind_each,
    "before": before_each,
    "below": on_lines_of_its_own,
    "last": as_last_turn,
    "first": as_first_turn,
}


def everywhere(family: str, *texts: str, first: int = 1) -> Iterable[Attack]:
    """Each text at each of the places, numbered from `first`."""
    for number, text in enumerate(texts, first):
        for place, put in _PLACES.items():
            yield Attack(family, f"{number} {place}", put(text))


def fresh(family: str) -> Iterable[Attack]:
    """The texts of a family that were written before anybody had measured them, at every place."""
    for number, text in enumerate(FRESH[family], 1):
        for place, put in {**_PLACES, "middle": in_the_middle}.items():
            yield Attack(family, f"fresh {number} {place}", put(text))


def replied(message: Json, content: str) -> Json:
    """The message with other words if it is the agent's."""
    return {**message, "content": content} if message["role"] == "assistant" else message


def line(text: str) -> Json:
    """A line of the persona."""
    return {"role": "user", "content": text}


def last_turn_of(talk: Transcript) -> int:
    """Where the agent's last turn is."""
    return max(i for i, message in enumerate(talk) if message["role"] == "assistant")


def answered(talk: Transcript) -> Transcript:
    """The conversation with the persona's word last."""
    return talk if talk[-1]["role"] == "user" else [*talk, line(PUZZLED)]
