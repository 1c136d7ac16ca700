"""Writes the sample files of this folder anew: `.venv/bin/python examples/data/make.py`.

The conversations are made up, put together from the lines below. Labels stand for what a person might have said: how
much the agent found out and how it spoke, with some disagreement. They are there to try commands on, not to learn from.
Rows that a reward model is trained on name the scenario as the server does, which always reads in one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

HERE = Path(__file__).parent
WHERE = {"collection_slug": "customer-support", "scenario_slug": "leaking-blender"}
SCENARIO = (
    "The leaking blender: A customer writes in because her blender leaks. You are the shop's support agent. Find out "
    "what happened, keep her safe, and settle the case: a unit from another batch, a refund of what is still open, or "
    "another way that policy allows. Record your decision with the tool and tell her what happens next."
)
"""Name and description of that scenario."""
OPENINGS = (
    "Hi, I need some help. My blender leaks from the bottom every time I run it.",
    "Hello. My blender leaks from the bottom every time I run it, and I am tired of mopping.",
    "Good morning. There's a puddle under the machine whenever I switch it on.",
)
USEFUL = (
    (
        "Is there a batch code on the base?",
        "Hold on, I'm turning it over... There's a sticker that says batch B7-0311.",
    ),
    ("When does it leak?", "It only drips once the motor is running and the jug is more than half full."),
    ("How do you clean it?", "The jug goes in the dishwasher, top rack. The booklet says that's fine, I checked."),
    (
        "Do you have a photo or a video of it?",
        "I have a video on my phone, ten seconds, you can see the drops run down.",
    ),
    ("When did you buy it?", "I ordered it on the ninth of March, so that makes it about seven weeks."),
    ("What is your order number?", "Let me see, the confirmation says VK-48213."),
)
USELESS = (
    ("Have you read the manual at all?", "That's not very friendly. Of course I have."),
    ("Please hold.", "Are you still there?"),
    ("Blenders are fun, aren't they?", "Not when they leak."),
    ("You must have broken it yourself.", "I beg your pardon?"),
    ("Anything else?", "You haven't helped me with the first thing yet."),
    ("That is not my department.", "Then who can help me?"),
)
KIND = ("I'm sorry about the mess.", "That must be annoying.", "Thank you, that helps.")


@dataclass(frozen=True)
class Talk:
    """A conversation and what it is worth, from 0 to 1."""

    messages: list[dict[str, str]]
    worth: float


def talk(source: Random, useful: int, useless: int, kind: bool) -> Talk:
    """One with so many useful and useless turns of the agent."""
    turns = [*source.sample(USEFUL, useful), *source.sample(USELESS, useless)]
    source.shuffle(turns)
    messages = [{"role": "user", "content": source.choice(OPENINGS)}]
    for question, answer in turns:
        said = f"{source.choice(KIND)} {question}" if kind and (question, answer) in USEFUL else question
        messages += [{"role": "assistant", "content": said}, {"role": "user", "content": answer}]
    return Talk(messages, min(1.0, max(0.0, 0.15 * useful - 0.1 * useless + (0.1 if kind else 0.0))))


def talks(source: Random, count: int) -> list[Talk]:
    """Different ones of all kinds."""
    found: dict[str, Talk] = {}
    while len(found) < count:
        useful, useless = source.randint(0, 6), source.randint(0, 3)
        if useful + useless:
            each = talk(source, useful, useless, source.random() < 0.5)
            found[json.dumps(each.messages)] = each
    return list(found.values())


def rated(source: Random, worth: float) -> float:
    """The rating of one person."""
    return round(min(1.0, max(0.0, worth + source.gauss(0.0, 0.08))), 2)


def pair(source: Random, number: int) -> dict[str, Any]:
    """The same customer with two agents."""
    better, worse = talk(source, source.randint(2, 5), 0, True), talk(source, 1, source.randint(1, 5), False)
    worse.messages[0] = better.messages[0]
    sides = {"chosen": better.messages, "rejected": worse.messages}
    return {**sides, "scenario": SCENARIO, "group": f"customer {number // 2}"}


def rewards(source: Random, number: int) -> dict[str, Any]:
    """A judge that is too sure of itself, and another one, beside what a person said."""
    chance = source.random()
    sure = min(1.0, max(0.0, 0.5 + 1.6 * (chance - 0.5) + source.gauss(0.0, 0.05)))
    other = min(1.0, max(0.0, chance + source.gauss(0.0, 0.2)))
    label = int(source.random() < chance)
    named = {"rubric": round(sure, 3), "reward_model": round(other, 3)}
    return {"rewards": named, "label": label, "group": f"talk {number // 2}"}


def compared(source: Random, number: int) -> dict[str, Any]:
    """Two rewards and who won; the leader wins more often the further it leads."""
    a, b = round(source.random(), 3), round(source.random(), 3)
    wins = source.random() < 1 / (1 + 2.718281828 ** (-6 * (a - b)))
    return {"reward_a": a, "reward_b": b, "winner": "a" if wins else "b", "group": f"prompt {number}"}


def write(name: str, rows: Iterable[Any]) -> None:
    """One row a line."""
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (HERE / name).write_text(text, encoding="utf-8")


def labelled(source: Random, found: Sequence[Talk]) -> list[dict[str, Any]]:
    """Rows of `reward-model train`."""
    return [
        {
            "messages": each.messages,
            "score": rated(source, each.worth),
            "scenario": SCENARIO,
            "group": f"customer {number // 3}",
        }
        for number, each in enumerate(found)
    ]


def main() -> None:
    """Write all files."""
    source = Random(0)  # noqa: S311 - no secret
    found = talks(source, 150)
    write("talks.jsonl", labelled(source, found[:90]))
    write("other.jsonl", labelled(source, found[90:120]))
    write(
        "conversations.jsonl", ({"id": f"talk-{n}", "messages": each.messages} for n, each in enumerate(found[120:130]))
    )
    stars = (
        {**WHERE, "messages": each.messages, "label": 1 + round(4 * rated(source, each.worth))} for each in found[120:]
    )
    write("judged.jsonl", stars)
    write("pairs.jsonl", (pair(source, number) for number in range(40)))
    write("rows.jsonl", (rewards(source, number) for number in range(240)))
    write("winners.jsonl", (compared(source, number) for number in range(120)))


if __name__ == "__main__":
    main()
