"""What an outside lab installs: the wire types, the clients, the rollout helper.

Needs pydantic and httpx2, nothing else of this repository. The contract's types are in
`trainer_client.wire`.
"""

from trainer_client.agent import Agent, AgentReply, BatchAgent, ChatMessage
from trainer_client.async_client import AsyncLabsClient
from trainer_client.batch import BatchOutcome, FailedItem, ScoredItem
from trainer_client.client import LabsClient
from trainer_client.errors import (
    BadRequest,
    BudgetExhausted,
    Conflict,
    ConnectionFailed,
    DeadlineExceeded,
    EpisodeComplete,
    Forbidden,
    HistoryMismatch,
    IdempotencyMismatch,
    LabsError,
    NotFound,
    PayloadTooLarge,
    ProviderFailed,
    RateLimited,
    ServerError,
    TurnInProgress,
    Unauthenticated,
    Unavailable,
    Unscored,
)
from trainer_client.retry import RetryPolicy
from trainer_client.rollout import Rollout, RolloutError, Rollouts, play, play_async
from trainer_client.scaling import AdaptiveScaler, NotWarmError

__all__ = [
    "AdaptiveScaler",
    "Agent",
    "AgentReply",
    "AsyncLabsClient",
    "BadRequest",
    "BatchAgent",
    "BatchOutcome",
    "BudgetExhausted",
    "ChatMessage",
    "Conflict",
    "ConnectionFailed",
    "DeadlineExceeded",
    "EpisodeComplete",
    "FailedItem",
    "Forbidden",
    "HistoryMismatch",
    "IdempotencyMismatch",
    "LabsClient",
    "LabsError",
    "NotFound",
    "NotWarmError",
    "PayloadTooLarge",
    "ProviderFailed",
    "RateLimited",
    "RetryPolicy",
    "Rollout",
    "RolloutError",
    "Rollouts",
    "ScoredItem",
    "ServerError",
    "TurnInProgress",
    "Unauthenticated",
    "Unavailable",
    "Unscored",
    "play",
    "play_async",
]
