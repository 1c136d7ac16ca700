"""Reward functions to build with: one object serves a training run, `labs score` and a judge plug-in.

Every reward reads a conversation as messages and returns a `RewardResult`: a number in [0, 1] and its components.
Each says in its docstring what it measures, and what it does not. A callable stays enough everywhere (`as_reward`).
"""

from trainer_client.rewards.base import (
    NO_CONTEXT,
    FunctionReward,
    GroupReward,
    RewardContext,
    RewardError,
    RewardFunction,
    RewardResult,
    as_reward,
)
from trainer_client.rewards.composite import CompositeReward
from trainer_client.rewards.judged import (
    ChatJudge,
    HelpfulnessReward,
    JudgeReward,
    SafetyReward,
    TaskCompletionReward,
)
from trainer_client.rewards.presets import PRESETS, preset
from trainer_client.rewards.server import RULER, LearnedReward, RubricReward, ServerReward
from trainer_client.rewards.text import (
    EngagementReward,
    KeywordReward,
    LengthReward,
    RegexReward,
    SimilarityReward,
)

__all__ = [
    "NO_CONTEXT",
    "PRESETS",
    "RULER",
    "ChatJudge",
    "CompositeReward",
    "EngagementReward",
    "FunctionReward",
    "GroupReward",
    "HelpfulnessReward",
    "JudgeReward",
    "KeywordReward",
    "LearnedReward",
    "LengthReward",
    "RegexReward",
    "RewardContext",
    "RewardError",
    "RewardFunction",
    "RewardResult",
    "RubricReward",
    "SafetyReward",
    "ServerReward",
    "SimilarityReward",
    "TaskCompletionReward",
    "as_reward",
    "preset",
]
