"""Every failure this service raises on purpose, as one tree.

    LabsError                       internal_error
    ├── ClientError                 client_error: the caller can do something about it
    │   ├── InvalidRequest          invalid_request (+ errors: where and what)
    │   │   ├── InvalidRewardConfig     invalid_reward_config
    │   │   ├── InvalidCursor           invalid_cursor
    │   │   ├── NothingToScore          nothing_to_score
    │   │   ├── TooManyMessages         too_many_messages
    │   │   ├── NoNewMessage            no_new_message
    │   │   └── EpisodeComplete         episode_complete
    │   ├── Unauthenticated         unauthenticated
    │   ├── Forbidden               forbidden
    │   │   ├── ScopeMissing            insufficient_scope
    │   │   └── TrainingUnavailable     training_unavailable: this server starts no training runs
    │   ├── NotFound                not_found
    │   │   ├── CollectionNotFound      collection_not_found
    │   │   ├── ScenarioNotFound        scenario_not_found
    │   │   ├── EpisodeNotFound         episode_not_found
    │   │   ├── EvaluationNotFound      evaluation_not_found
    │   │   ├── FileNotFound            file_not_found
    │   │   ├── JobNotFound             job_not_found
    │   │   ├── RewardModelNotFound     reward_model_not_found
    │   │   ├── CalibrationNotFound     calibration_not_found
    │   │   ├── LabNotFound             lab_not_found
    │   │   ├── KeyNotFound             key_not_found
    │   │   ├── ComparisonNotFound      comparison_not_found
    │   │   ├── AgentNotFound           agent_not_found
    │   │   ├── TrainingRunNotFound     training_run_not_found
    │   │   └── WebhookNotFound         webhook_not_found
    │   ├── Conflict                conflict
    │   │   ├── HistoryMismatch         history_mismatch
    │   │   ├── IdempotencyMismatch     idempotency_mismatch
    │   │   ├── TurnInProgress          turn_in_progress
    │   │   ├── EpisodeExists           episode_exists
    │   │   ├── LeaseLost               lease_lost: another worker has the items of a job, or it is over
    │   │   └── CalibrationMismatch     calibration_mismatch
    │   ├── BodyTooLarge            body_too_large
    │   │   └── TooMuchText             too_much_text
    │   ├── BodyTooSlow             body_too_slow
    │   ├── NotJson                 unsupported_media_type
    │   ├── UnknownHost             unknown_host
    │   └── RateLimited             rate_limited (+ retry_after_s)
    │       ├── BudgetExhausted         budget_exhausted: the lab's tokens or money of the day
    │       │   └── BudgetTooSmall          budget_too_small: one question costs more than the lab's whole day
    │       ├── ComputeExhausted        compute_exhausted: the lab's characters to read a minute
    │       ├── TooManyAtOnce           too_many_at_once: the lab's requests in work, or the key's; its open jobs
    │       ├── TooManyWeightings       too_many_weightings: quality_weights of a scenario, in a day
    │       ├── StorageExhausted        storage_exhausted: what the lab may store: conversations, files, models
    │       └── TooManyFailedKeys       too_many_failed_keys: keys of this address that are no good
    ├── ProviderFailed              provider_failed: something we asked did not answer usefully
    │   ├── JudgeFailed                 judge_failed (+ retry_after_s, where known)
    │   ├── PersonaFailed               persona_failed
    │   └── AgentFailed                 agent_failed: the endpoint of a lab's agent
    ├── Unavailable                 unavailable (+ retry_after_s): the same request may work later
    │   ├── StoreUnavailable            store_unavailable
    │   ├── NotReady                    not_ready
    │   ├── Stopped                     stopping
    │   ├── Overloaded                  overloaded
    │   └── EncoderUnavailable          encoder_unavailable
    └── ConfigurationError          configuration_error: an operator has to change something
        ├── ScenarioError               scenario_error
        └── UnusableModel               unusable_reward_model

A `code` is part of the public contract and never changes. A message is shown to the caller as it is:
it never holds rubric text, an unrevealed fact, a secret or what the caller wrote. A command in it is written as it
can be typed where this process was started (`program`): codes are for machines, messages are not. HTTP statuses are
not here; the api room maps classes to them.
"""

# ruff: noqa: N818  (the names are the domain's words for these outcomes; most are no accident of the program)

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from reward_server.program import as_called


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One thing wrong with a request: where, and what."""

    loc: tuple[str | int, ...]
    msg: str


class LabsError(Exception):
    """Root of the tree; raised itself only for a defect of ours."""

    code: ClassVar[str] = "internal_error"
    default_message: ClassVar[str] = "Internal server error. It was logged; please try again."

    def __init__(self, message: str | None = None) -> None:
        self.message = as_called(self.default_message if message is None else message)
        super().__init__(self.message)


def in_a_line(error: LabsError) -> str:
    """The message to an item of a batch: the first thing that is wrong with it, and where."""
    if isinstance(error, InvalidRequest) and error.errors:
        first = error.errors[0]
        where = ".".join(str(part) for part in first.loc)
        return f"{where}: {first.msg}" if where else first.msg
    return error.message


# --- the caller's side --------------------------------------------------------------------------


class ClientError(LabsError):
    """A request that cannot be done as it was asked."""

    code = "client_error"
    default_message = "The request cannot be served."


class InvalidRequest(ClientError):
    """The input is malformed or out of range."""

    code = "invalid_request"
    default_message = "The request is not valid."

    def __init__(self, message: str | None = None, errors: Sequence[FieldProblem] = ()) -> None:
        super().__init__(message)
        self.errors = tuple(errors)


class InvalidRewardConfig(InvalidRequest):
    """The weights are empty, all zero, negative or unknown."""

    code = "invalid_reward_config"
    default_message = "reward_config is not valid."


class InvalidCursor(InvalidRequest):
    """A cursor that this server did not make."""

    code = "invalid_cursor"
    default_message = "The cursor is invalid: it does not come from this server."


class NothingToScore(InvalidRequest):
    """A conversation without a message by the agent."""

    code = "nothing_to_score"
    default_message = "The conversation has no message by the agent."


class TooManyMessages(InvalidRequest):
    """More than one new message in a turn."""

    code = "too_many_messages"
    default_message = "A turn takes one new agent message; more than one was sent."


class NoNewMessage(InvalidRequest):
    """The history ends with the persona's last line."""

    code = "no_new_message"
    default_message = "The messages contain no new agent message."


class EpisodeComplete(InvalidRequest):
    """The episode has ended and takes no further turn."""

    code = "episode_complete"
    default_message = "The episode is complete and takes no further turns."


class Unauthenticated(ClientError):
    """No key, or one that is malformed, unknown, expired or revoked: of a key the caller is not told which."""

    code = "unauthenticated"
    default_message = "A valid API key is required: Authorization: Bearer lab_…"


class Forbidden(ClientError):
    """A good key without access to what it asks for."""

    code = "forbidden"
    default_message = "This API key has no access to this resource."


class ScopeMissing(Forbidden):
    """A good key that may not be used for this call."""

    code = "insufficient_scope"
    default_message = "This API key has none of the scopes that this call needs."

    def __init__(self, message: str | None = None, *, scopes: Sequence[str] = ()) -> None:
        if message is None and scopes:
            named = " or ".join(f"`{scope}`" for scope in scopes)
            message = f"This call needs an API key with the scope {named}."
        super().__init__(message)


class TrainingUnavailable(Forbidden):
    """This server starts no training runs: they are turned off, or the learner is not installed."""

    code = "training_unavailable"
    default_message = "This server starts no training runs."


class NotFound(ClientError):
    """No such thing, or one that belongs to another lab: the caller is not told which."""

    code = "not_found"
    default_message = "There is no such resource."


class CollectionNotFound(NotFound):
    """Unknown collection slug."""

    code = "collection_not_found"
    default_message = "There is no such collection."


class ScenarioNotFound(NotFound):
    """Unknown scenario slug."""

    code = "scenario_not_found"
    default_message = "There is no such scenario in this collection."


class EpisodeNotFound(NotFound):
    """Unknown, expired or somebody else's episode."""

    code = "episode_not_found"
    default_message = "There is no such episode, or it has expired."


class EvaluationNotFound(NotFound):
    """Unknown or somebody else's evaluation."""

    code = "evaluation_not_found"
    default_message = "There is no such evaluation."


class FileNotFound(NotFound):
    """Unknown, deleted or somebody else's file."""

    code = "file_not_found"
    default_message = "There is no such file."


class JobNotFound(NotFound):
    """Unknown or somebody else's job."""

    code = "job_not_found"
    default_message = "There is no such job."


class ComparisonNotFound(NotFound):
    """Unknown id of a comparison, or another lab's."""

    code = "comparison_not_found"
    default_message = "There is no such comparison; POST /compare returns a comparison_id."


class WebhookNotFound(NotFound):
    """Unknown id of a webhook or of a message to it, or another lab's."""

    code = "webhook_not_found"
    default_message = "There is no such webhook or message."


class AgentNotFound(NotFound):
    """Unknown, deleted, or another lab's: the caller cannot tell which."""

    code = "agent_not_found"
    default_message = "There is no such agent; GET /agents lists your agents."


class TrainingRunNotFound(NotFound):
    """Unknown, deleted, or another lab's: the caller cannot tell which."""

    code = "training_run_not_found"
    default_message = "There is no such training run; GET /training-runs lists your runs."


class RewardModelNotFound(NotFound):
    """Unknown id of a reward model."""

    code = "reward_model_not_found"
    default_message = "There is no such reward model; GET /api/v1/reward-models lists those of this lab."


class CalibrationNotFound(NotFound):
    """The lab has no such calibration of its own."""

    code = "calibration_not_found"
    default_message = "This lab has no such calibration."


class LabNotFound(NotFound):
    """Unknown id of a lab; told to operators alone."""

    code = "lab_not_found"
    default_message = "There is no such lab; ./labs tenants list shows all labs."


class KeyNotFound(NotFound):
    """Unknown id of a key; told to operators alone."""

    code = "key_not_found"
    default_message = "There is no such API key; ./labs keys list shows all keys."


class Conflict(ClientError):
    """The request is well formed but does not fit the present state."""

    code = "conflict"
    default_message = "The request conflicts with the current state."


class HistoryMismatch(Conflict):
    """The messages sent before the new one are not the episode's log."""

    code = "history_mismatch"
    default_message = "The history in the request differs from the episode's log."


class IdempotencyMismatch(Conflict):
    """An Idempotency-Key that was used for another body."""

    code = "idempotency_mismatch"
    default_message = "This Idempotency-Key was used with a different request."


class TurnInProgress(Conflict):
    """Another turn of the same episode is being answered."""

    code = "turn_in_progress"
    default_message = "Another turn of this episode is being answered."


class EpisodeExists(Conflict):
    """A session in which an episode was begun before."""

    code = "episode_exists"
    default_message = "This session has an episode already; open a new session for another task."


class CalibrationMismatch(Conflict):
    """A calibration that was fitted for other rewards than those served."""

    code = "calibration_mismatch"
    default_message = "This calibration was fitted for another scoring version or reward model."


class LeaseLost(Conflict):
    """Somebody else has the items by now, or the job is over: what was made of them is not recorded."""

    code = "lease_lost"
    default_message = "The job is over, or another worker has taken its items."


class BodyTooLarge(ClientError):
    """The body is over the limit."""

    code = "body_too_large"
    default_message = "The request body is too large."


class TooMuchText(BodyTooLarge):
    """The conversations of a request are longer than can be read in time."""

    code = "too_much_text"
    default_message = "The conversations of this request are too long."


class NotJson(ClientError):
    """A request that changes something and does not say that its body is JSON, as every page of the web could send."""

    code = "unsupported_media_type"
    default_message = "Set the header Content-Type: application/json (for a JSONL file: application/jsonl)."


class UnknownHost(ClientError):
    """The request was meant for a server of another name."""

    code = "unknown_host"
    default_message = (
        "This server does not accept the name in the Host header; the operator sets accepted names in LABS_HOSTS."
    )


class BodyTooSlow(ClientError):
    """The body did not arrive in time."""

    code = "body_too_slow"
    default_message = "The request body did not arrive in time."


class RateLimited(ClientError):
    """The key has used up its requests for now."""

    code = "rate_limited"
    default_message = "Rate limit exceeded."

    def __init__(self, message: str | None = None, *, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class BudgetExhausted(RateLimited):
    """The lab has spent what it may on language models for now."""

    code = "budget_exhausted"
    default_message = "This lab has used up its daily budget for language models."


class BudgetTooSmall(BudgetExhausted):
    """A question for which no day of the lab has room: waiting is of no use, unless its limit is raised meanwhile."""

    code = "budget_too_small"
    default_message = (
        "One question to a language model costs more than this lab's budget for a whole day. "
        "Send less text, or have the operator raise the limit."
    )


class ComputeExhausted(RateLimited):
    """The lab had more read than its plan allows in a minute."""

    code = "compute_exhausted"
    default_message = "This lab has sent more text than its plan allows per minute."


class TooManyWeightings(RateLimited):
    """The lab has used as many weightings of the scenario as it may in a day."""

    code = "too_many_weightings"
    default_message = (
        "This lab has used as many different quality_weights of this scenario as it may in a day."
        " Use one of those, none, or a key with full scores."
    )


class TooManyAtOnce(RateLimited):
    """The lab has as many requests in work as it may."""

    code = "too_many_at_once"
    default_message = "This lab or key has too many requests in progress."


class StorageExhausted(RateLimited):
    """The lab has stored what it may."""

    code = "storage_exhausted"
    default_message = "This lab has reached its storage limit; delete conversations or ask the operator to raise it."

    def __init__(self, message: str | None = None, *, retry_after_s: int = 60) -> None:
        super().__init__(message, retry_after_s=retry_after_s)


class TooManyFailedKeys(RateLimited):
    """An address sent too many keys that are no good."""

    code = "too_many_failed_keys"
    default_message = "Too many invalid API keys came from this address; wait, then send a valid one."


# --- our side -----------------------------------------------------------------------------------


class ProviderFailed(LabsError):
    """Something this service asked gave no usable answer; nothing was recorded."""

    code = "provider_failed"
    default_message = "A provider failed. Nothing was recorded; you can send the same request again."


class JudgeFailed(ProviderFailed):
    """A judge failed, so there is no reward: a failure never becomes a number."""

    code = "judge_failed"
    default_message = "A judge failed. Nothing was recorded; you can send the same request again."

    def __init__(self, message: str | None = None, *, kind: str = "unsound", retry_after_s: int | None = None) -> None:
        if message is None and retry_after_s is not None:
            message = f"{self.default_message.removesuffix('.')} in {retry_after_s} s."
        super().__init__(message)
        self.kind = kind
        """How it failed, in a word for metrics and operators; never shown to the caller."""
        self.retry_after_s = retry_after_s
        """Asking earlier is of no use; None where nobody knows."""


class PersonaFailed(ProviderFailed):
    """The persona gave no reply that may be shown."""

    code = "persona_failed"
    default_message = "The persona failed. Nothing was recorded; you can send the same request again."


class AgentFailed(ProviderFailed):
    """An agent gave no turn: its endpoint failed. That is no reward of 0."""

    code = "agent_failed"
    default_message = "The agent's endpoint failed. Nothing was recorded; you can send the same request again."

    @classmethod
    def because(cls, cause: str) -> AgentFailed:
        """The error of an endpoint whose fault is known: `cause` is a clause without a full stop."""
        return cls(f"The agent's endpoint failed: {cause}. Nothing was recorded.")


class Unavailable(LabsError):
    """Not now: the same request may work after `retry_after_s` seconds."""

    code = "unavailable"
    default_message = "The service is not available right now."

    def __init__(self, message: str | None = None, *, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class StoreUnavailable(Unavailable):
    """The database is locked, full, read-only or gone; nothing was half written."""

    code = "store_unavailable"
    default_message = "The database is not available right now. Nothing was recorded."


class NotReady(Unavailable):
    """The server is starting or draining, or something that it needs is missing."""

    code = "not_ready"
    default_message = "The server is not ready."

    def __init__(self, message: str | None = None, missing: Sequence[FieldProblem] = ()) -> None:
        super().__init__(message)
        self.errors = tuple(missing)


class Stopped(Unavailable):
    """The server is being stopped, and this could not be finished before."""

    code = "stopping"
    default_message = "The server is being stopped. Nothing was recorded: send the same request again."


class Overloaded(Unavailable):
    """More work is waiting than can be done in time."""

    code = "overloaded"
    default_message = "The server is overloaded."


class EncoderUnavailable(Unavailable):
    """The text encoder is missing or damaged."""

    code = "encoder_unavailable"
    default_message = "The text encoder is not available."


class ConfigurationError(LabsError):
    """The settings or the data directory cannot be used; the message is for the operator."""

    code = "configuration_error"
    default_message = "The server is not configured correctly."


class ScenarioError(ConfigurationError):
    """A scenario file cannot be used; the message names the place, never the content."""

    code = "scenario_error"
    default_message = "A scenario file is not valid."


class UnusableModel(ConfigurationError):
    """A folder that holds no reward model this server can use; the message says what to do."""

    code = "unusable_reward_model"
    default_message = "The reward model cannot be used."
