"""Composites to start from, by domain. Each asks a judge; the weights are a starting point that nobody tuned."""

from __future__ import annotations

from trainer_client.rewards.base import RewardFunction
from trainer_client.rewards.composite import CompositeReward
from trainer_client.rewards.judged import HelpfulnessReward, Judge, JudgeReward, SafetyReward, TaskCompletionReward
from trainer_client.rewards.text import EngagementReward, LengthReward

_GOALS = {
    "support": "the user's problem is solved, or the user knows what happens next and when",
    "technical_help": "the user has a solution that the user has tried, or knows which step to try next",
    "sales": "the user's need is known, and the user has an honest offer that fits it",
    "tutoring": "the learner has found the answer by own reasoning and has shown it on another example",
    "intake": "everything that the next person has to know was asked for and understood",
}
_MANNERS = {
    "support": "Does the assistant take the user's trouble seriously, without promising what it cannot keep?",
    "technical_help": "Does the assistant find out what the user already tried before it proposes something?",
    "sales": "Is everything that the assistant says about the product true and free of pressure?",
    "tutoring": "Does the assistant lead with questions and hints instead of giving the answer away?",
    "intake": "Does the assistant ask one thing at a time, in words that the user understands?",
}
PRESETS = tuple(_GOALS)


def preset(domain: str, judge: Judge) -> RewardFunction:
    """The composite of a domain: goal, manner, helpfulness, safety, length, and for intake how much is told.

    Raises:
        ValueError: there is no such preset.
    """
    if domain not in _GOALS:
        raise ValueError(f"{domain!r} is not a preset; use {', '.join(PRESETS)}")
    more: dict[str, tuple[RewardFunction, float]] = {"engagement": (EngagementReward(), 0.1)}
    parts: dict[str, tuple[RewardFunction, float]] = {
        "task_completion": (TaskCompletionReward(_GOALS[domain], judge=judge), 0.4),
        "manner": (JudgeReward(_MANNERS[domain], judge, name="manner"), 0.2),
        "helpfulness": (HelpfulnessReward(judge), 0.2),
        "safety": (SafetyReward(judge), 0.1),
        "length": (LengthReward(), 0.1),
        **(more if domain == "intake" else {}),
    }
    return CompositeReward(parts)
