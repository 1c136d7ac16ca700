"""Operators' calls: /labs, /keys, /audit; and GET /usage, which every lab may ask about itself."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field, StringConstraints

from trainer_client.wire.base import RequestModel, ResponseModel

LabId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
Label = Annotated[str, StringConstraints(max_length=200)]
ScopeName = Literal["train", "score", "export", "label", "author", "operate"]
PlanName = Literal["standard", "premium", "custom"]
Amount = Annotated[int, Field(ge=0, le=2**53)]


class LabLimits(RequestModel):
    """The limits of a lab, beside the plans of its keys; what is absent has no limit of its own."""

    characters_per_day: Amount | None = None
    """Text that is read for it in a day (UTC)."""
    tokens_per_day: Amount | None = None
    """Tokens of language models in a day; in the place of LABS_LLM_DAILY_TOKENS."""
    usd_per_day: Annotated[float, Field(ge=0.0, le=1e9)] | None = None
    """Money for language models in a day; in the place of LABS_LLM_DAILY_USD."""
    concurrency: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Requests in progress at once."""
    storage_mb: Annotated[float, Field(ge=0.0, le=1e9)] | None = None
    """All that is stored, in megabytes: conversations, uploaded files, results of jobs, reward models, calibrations."""
    retention_days: Annotated[int, Field(ge=1, le=36_500)] | None = None
    """Days after which conversations, files, jobs that are over and rows of broken trainings are deleted."""


class CreateLabRequest(RequestModel):
    """Body of POST /labs."""

    lab_id: LabId
    name: Label = ""
    limits: LabLimits = LabLimits()


class ChangeLabRequest(RequestModel):
    """Body of PATCH /labs/{lab_id}; what is absent stays, and limits are replaced as a whole."""

    name: Label | None = None
    limits: LabLimits | None = None


class LimitsSummary(ResponseModel):
    """`LabLimits` as they are answered."""

    characters_per_day: int | None = None
    tokens_per_day: int | None = None
    usd_per_day: float | None = None
    concurrency: int | None = None
    storage_mb: float | None = None
    retention_days: int | None = None


class LabSummary(ResponseModel):
    """A lab."""

    lab_id: str
    name: str
    limits: LimitsSummary
    created_at: str


class LabResponse(LabSummary):
    """One lab."""

    request_id: str


class LabList(ResponseModel):
    """All labs, by their ids."""

    data: list[LabSummary]
    next_cursor: str | None = None
    request_id: str


class DeletedData(ResponseModel):
    """Answer of DELETE /labs/{lab_id}/data: how many rows there were of each kind."""

    lab_id: str
    deleted: dict[str, int]
    request_id: str


class CreateKeyRequest(RequestModel):
    """Body of POST /keys."""

    lab_id: LabId
    name: Label = ""
    scopes: Annotated[list[ScopeName], Field(min_length=1, max_length=len(get_args(ScopeName)))] | None = None
    """Default: all but `author` and `operate`."""
    plan: PlanName = "standard"
    rate_per_minute: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    """Of the custom plan, and of no other."""
    collections: Annotated[list[str], Field(max_length=100)] | None = None
    full_scores: bool = False
    expires_days: Annotated[int, Field(ge=1, le=3650)] | None = None
    concurrency: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Limit of requests in progress of this key."""


class KeySummary(ResponseModel):
    """An API key, without its secret."""

    key_id: str
    lab_id: str
    name: str
    scopes: list[str]
    plan: str
    rate_per_minute: int | None = None
    collections: list[str] | None = None
    full_scores: bool
    concurrency: int | None = None
    created_at: str
    last_used_at: str | None = None
    """When it was last good for a call, a minute late at most."""
    expires_at: str | None = None
    revoked_at: str | None = None


class KeyResponse(KeySummary):
    """One key."""

    request_id: str


class NewKeyResponse(KeyResponse):
    """A key that was just made; `key` is shown this once."""

    key: str


class KeyList(ResponseModel):
    """API keys, the newest first."""

    data: list[KeySummary]
    next_cursor: str | None = None
    request_id: str


class AuditEvent(ResponseModel):
    """Something that was done, or tried, and that somebody may have to account for."""

    id: str
    at: str
    lab_id: str
    """Whose key it was; empty where there was none."""
    actor: str
    """Id of the key, or `command line`."""
    address: str
    action: str
    target: str


class AuditList(ResponseModel):
    """Events, the newest first."""

    data: list[AuditEvent]
    next_cursor: str | None = None
    request_id: str


class UsageDay(ResponseModel):
    """The usage of a lab on a day (UTC)."""

    day: str
    requests: int
    turns: int
    """Turns that were sent to be played."""
    evaluations: int
    """Conversations that were sent to be scored."""
    characters: int
    """Text that had to be read."""
    llm_calls: int
    llm_tokens: int
    llm_usd: float


class UsageResponse(ResponseModel):
    """Answer of GET /usage."""

    lab_id: str
    limits: LimitsSummary
    data: list[UsageDay]
    """By day, the newest first; days without use are left out."""
    request_id: str
