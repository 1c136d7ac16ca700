"""The package that an outside lab installs: the wire types, the clients, the rollout helper.

Needs pydantic and httpx2, nothing else of this repository. The contract's types are in
`trainer_client.wire`.
"""

from trainer_client.agent import Agent, AgentReply, BatchAgent, ChatMessage, ChatToolCall
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
    MalformedAnswer,
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
from trainer_client.exchange import RawResponse
from trainer_client.paging import AsyncPage, AsyncPages, Page
from trainer_client.retry import NOT_GIVEN, RetryPolicy
from trainer_client.rollout import Rollout, RolloutError, Rollouts, play, play_async
from trainer_client.scaling import AdaptiveScaler, NotWarmError
from trainer_client.version import __version__

__all__ = [
    "NOT_GIVEN",
    "AdaptiveScaler",
    "Agent",
    "AgentReply",
    "AsyncLabsClient",
    "AsyncPage",
    "AsyncPages",
    "BadRequest",
    "BatchAgent",
    "BatchOutcome",
    "BudgetExhausted",
    "ChatMessage",
    "ChatToolCall",
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
    "MalformedAnswer",
    "NotFound",
    "NotWarmError",
    "Page",
    "PayloadTooLarge",
    "ProviderFailed",
    "RateLimited",
    "RawResponse",
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
    "__version__",
    "play",
    "play_async",
]
