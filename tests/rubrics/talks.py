"""Six logs of differing quality about a bicycle, a waffle, a list of keywords, and a wild promise; and their rubric."""

from __future__ import annotations

from typing import Any

OPENING = "My front brake squeals since yesterday."

RUBRIC: dict[str, Any] = {
    "schema": "labs.rubric/1",
    "name": "Answers of a bike shop",
    "situation": "The agent works for a bike shop and answers customers who write about a repair.",
    "dimensions": [{"name": "D1_Finding", "weight": 0.5}, {"name": "D2_Answer", "weight": 0.5}],
    "criteria": [
        {
            "id": "asks_about_it",
            "dimension": "D1_Finding",
            "points": 2,
            "check": {"keyword": {"any": ["brake", "brakes", "pads", "disc", "rim", "squeal"], "at_least": 2}},
        },
        {"id": "asks", "dimension": "D1_Finding", "check": {"regex": {"pattern": r"\?"}}},
        {
            "id": "says_when",
            "dimension": "D2_Answer",
            "points": 2,
            "check": {"regex": {"pattern": r"\b(today|tomorrow|(mon|tues|wednes|thurs|fri)day)\b"}},
        },
        {"id": "says_cost", "dimension": "D2_Answer", "check": {"regex": {"pattern": r"\d+ ?(euros?|pounds?|€|£)"}}},
        {
            "id": "keeps_them_safe",
            "dimension": "D2_Answer",
            "points": 2,
            "check": {
                "similar": {
                    "exemplars": [
                        "Please do not ride it until we have looked at the brakes.",
                        "It is safer to leave the bike at home until then.",
                    ]
                }
            },
        },
        {
            "id": "wild_promise",
            "dimension": "D2_Answer",
            "cap": 0.3,
            "check": {"keyword": {"any": ["guaranteed", "lifetime"]}},
        },
    ],
}

JUDGED: dict[str, Any] = {
    "name": "Answers of a bike shop",
    "situation": "The agent works for a bike shop and answers customers who write about a repair.",
    "criteria": [
        {"id": "asks_about_brake", "check": {"judge": {"question": "Does the agent ask about the brake itself?"}}},
        {"id": "gives_a_day", "check": {"judge": {"question": "Does the agent name a day for the repair?"}}},
        {"id": "keeps_safe", "check": {"judge": {"question": "Does the agent advise not to ride until then?"}}},
    ],
}

_SAID = {
    "excellent": (
        "That sounds annoying. Are those disc or rim brakes, and when were the pads last changed?",
        "Then the pads are probably worn through. Please leave the bike at home until we have looked at it. "
        "Bring it in tomorrow morning, new pads are 35 euros including fitting.",
    ),
    "good": (
        "Have you checked whether the pads of that brake are worn?",
        "Come by on Friday and we will have a look at it.",
    ),
    "fair": ("It could be the brake pads.", "You can bring it to the shop whenever you like."),
    "poor": ("Have you tried cleaning the chain?", "Every bike makes some noise, I would not worry about it."),
    "waffle": (
        "Thank you so much for reaching out to us, your satisfaction is our highest priority!",
        "We truly appreciate your patience and are always here to help you with anything you may need.",
    ),
    "list": (
        "brake, pads, disc, rim, squeal, today, tomorrow, Friday, 35 euros, safe, cost, price",
        "brakes, pads, discs, tomorrow, 20 pounds, quality, diagnosis, resolution, next steps, safety",
    ),
}
ORDER = ("excellent", "good", "fair", "poor")
EMPTY = ("waffle", "list")
_PROMISE = (
    "Are those disc or rim brakes, and when were the pads last changed?",
    "Bring it in tomorrow, new pads are 35 euros with a lifetime warranty, guaranteed.",
)


def talk(said: tuple[str, ...]) -> list[dict[str, str]]:
    """The customer's lines are the same in all of them."""
    lines = [OPENING, "Disc brakes, and never, I think.", "Thanks."]
    messages = [{"role": "user", "content": lines[0]}]
    for line, answer in zip(said, lines[1:], strict=False):
        messages += [{"role": "assistant", "content": line}, {"role": "user", "content": answer}]
    return messages


LOGS = {name: talk(said) for name, said in _SAID.items()}
PROMISE = talk(_PROMISE)
