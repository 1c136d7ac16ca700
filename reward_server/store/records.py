"""Records that go in and out of the store: plain frozen values, one per kind of row.

Tables never leave the room; these do. Fields that hold conversation text, a persona's private state
or verdicts stay out of `repr`, so that a record in a log line or a traceback gives nothing away.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]

EPISODE_LIFETIME = timedelta(hours=24)
"""An episode without activity for this long has expired."""
ANSWER_LIFETIME = timedelta(hours=24)
"""How long the answer to an Idempotency-Key is kept."""


class EpisodeStatus(StrEnum):
    """The status of an episode at a given moment; `expired` is never stored, it follows from the time."""

    ACTIVE = "active"
    COMPLETE = "complete"
    EXPIRED = "expired"


class EvaluationSource(StrEnum):
    """The door an evaluation came through."""

    EVALUATE = "evaluate"
    BATCH = "batch"
    COMPARE = "compare"
    JOB = "job"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabLimitsRow:
    """The limits of a lab beside the plans of its keys; None means no limit of its own."""

    characters_per_day: int | None = None
    tokens_per_day: int | None = None
    nano_usd_per_day: int | None = None
    concurrency: int | None = None
    storage_bytes: int | None = None
    retention_days: int | None = None


NO_LIMITS = LabLimitsRow()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """Something that was done, or tried."""

    event_id: str
    at: datetime
    lab_id: str
    """Whose key it was; empty where there was none."""
    actor: str
    address: str
    action: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """The usage of a lab on a day."""

    lab_id: str
    day: date
    requests: int = 0
    turns: int = 0
    evaluations: int = 0
    characters: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LabRow:
    """A tenant."""

    lab_id: str
    name: str
    """As people call it; may be empty."""
    created_at: datetime
    limits: LabLimitsRow = NO_LIMITS


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRow:
    """An API key: what it may do, and a digest from which it cannot be told."""

    key_id: str
    lab_id: str
    name: str
    digest: bytes = field(repr=False)
    plan: str
    rate_per_minute: int | None
    """Requests per minute of a custom plan; None means what the plan says."""
    collections: tuple[str, ...] | None
    """Collections the key may use; None means all."""
    full_scores: bool
    created_at: datetime
    revoked_at: datetime | None = None
    scopes: tuple[str, ...] = ()
    """What it may be used for, by the names of `coordination.scopes`."""
    concurrency: int | None = None
    """Requests of this key in work at once; None means as many as its lab may have."""
    expires_at: datetime | None = None
    """When it stops working by itself; None means never."""
    last_used_at: datetime | None = None
    """When it was last good for a call, a minute late at most; None if it never was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeRow:
    """An episode as it stands after its last turn."""

    episode_id: str
    lab_id: str
    collection: str
    scenario: str
    seed: int
    persona_slug: str
    observation_role: str
    score_turns: bool
    reward_config: JsonObject | None
    metadata: JsonObject | None = field(repr=False)
    max_turns: int
    turn: int
    persona_state: JsonObject = field(repr=False)
    status: EpisodeStatus
    terminal_reason: str | None
    opening: str = field(repr=False)
    created_at: datetime
    active_at: datetime

    @property
    def expires_at(self) -> datetime:
        """The moment at which it expires if nothing more happens."""
        return self.active_at + EPISODE_LIFETIME

    def status_at(self, now: datetime) -> EpisodeStatus:
        """The status at this moment; a complete episode stays complete."""
        if self.status is EpisodeStatus.ACTIVE and now >= self.expires_at:
            return EpisodeStatus.EXPIRED
        return self.status


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRow:
    """One answered turn, with the answer as it was given."""

    episode_id: str
    turn: int
    agent_content: str = field(repr=False)
    tool_calls: list[JsonObject] | None = field(repr=False)
    observation: str = field(repr=False)
    reward: float
    scores: dict[str, float] | None
    answer: JsonObject = field(repr=False)
    """The stored response body, without its `request_id`."""
    fingerprint: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationRow:
    """One scored conversation. `verdicts` is for the operator alone."""

    evaluation_id: str
    lab_id: str
    collection: str
    scenario: str
    reward: float
    scores: dict[str, float] | None
    scoring_version: str
    normalization_key: str | None
    messages: list[JsonObject] = field(repr=False)
    agent_role: str
    reward_config: JsonObject | None
    verdicts: list[JsonObject] = field(repr=False)
    source: EvaluationSource
    created_at: datetime
    answer: JsonObject | None = field(repr=False, default=None)
    """The answer as it was given, without its `request_id`; None for rows of older versions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow:
    """Two conversations of one scenario, scored side by side. `verdicts_*` are for the operator alone."""

    comparison_id: str
    lab_id: str
    collection: str
    scenario: str
    winner: str
    reward_a: float
    reward_b: float
    margin: float
    scores_a: dict[str, float] | None
    scores_b: dict[str, float] | None
    scoring_version: str
    agent_role: str
    reward_config: JsonObject | None
    messages_a: list[JsonObject] = field(repr=False)
    messages_b: list[JsonObject] = field(repr=False)
    verdicts_a: list[JsonObject] = field(repr=False)
    verdicts_b: list[JsonObject] = field(repr=False)
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceRow:
    """The preference of a person between two conversations of one scenario.

    Of a stored comparison it has that one's rewards as well; otherwise nobody has scored the two.
    """

    preference_id: str
    lab_id: str
    comparison_id: str | None
    collection: str
    scenario: str
    winner: str
    margin: float | None
    """How much better, in (0, 1], where the person said so."""
    labeller: str | None
    reward_a: float | None
    reward_b: float | None
    scoring_version: str | None
    agent_role: str
    messages_a: list[JsonObject] = field(repr=False)
    messages_b: list[JsonObject] = field(repr=False)
    created_at: datetime
    note: str | None = field(default=None, repr=False)
    """Why, in the person's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionLabelRow:
    """What a person says of one criterion in a stored conversation, beside what the judges said of it then."""

    label_id: str
    lab_id: str
    conversation_id: str
    """Of the episode or the evaluation."""
    collection: str
    scenario: str
    criterion: str
    dimension: str
    worth: str
    met: bool
    quote: str | None = field(repr=False)
    labeller: str | None
    note: str | None = field(repr=False)
    status: str
    """The verdict of the judge, and what it was worth, in [0, 1]."""
    value: float | None
    judge: str
    reward: float
    """Of the whole conversation."""
    scoring_version: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedEpisode:
    """A complete, scored episode with the reward of its last turn: what groups are made of."""

    episode_id: str
    collection: str
    scenario: str
    seed: int
    persona_slug: str
    reward_config: JsonObject | None
    reward: float
    created_at: datetime


@dataclass(frozen=True, slots=True, order=True)
class PageEnd:
    """The last row of a page of rows with an id: the next page begins after it."""

    created_at: datetime
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswer:
    """The answer that was given under an Idempotency-Key."""

    lab_id: str
    key: str
    fingerprint: str
    status: int
    body: JsonObject = field(repr=False)
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Rewards of a window. `mean` and `std` (of the population) are 0 when there are none."""

    n: int
    mean: float
    std: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """An amount spent on language models. Money is in whole billionths of a US dollar, so that sums are exact."""

    tokens: int = 0
    nano_usd: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """The most that may be spent; None means no limit."""

    tokens: int | None = None
    nano_usd: int | None = None


NO_CEILING = Ceiling()


@dataclass(frozen=True, slots=True, kw_only=True)
class BookingRow:
    """The most that a question on its way may cost; it stops counting at `runs_out_at`, whoever booked it."""

    booking_id: str
    lab_id: str
    day: date
    spend: Spend
    runs_out_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingRow:
    """The spending of a lab on a day: settled calls, and what is booked for those on their way."""

    lab_id: str
    day: date
    calls: int
    spent: Spend
    booked: Spend


class DeliveryState(StrEnum):
    """The state of a message to a webhook."""

    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"
    """Given up; it can be sent again by hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRow:
    """A URL at which a lab wants to be told of events. Its secret is derived from the pepper, and stored nowhere."""

    webhook_id: str
    lab_id: str
    url: str = field(repr=False)
    """May hold a token of the receiver."""
    events: tuple[str, ...]
    description: str | None
    created_at: datetime
    disabled_at: datetime | None = None
    """Since when the receiver said it is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRow:
    """One message to one webhook."""

    message_id: str
    webhook_id: str
    lab_id: str
    event: str
    body: str = field(repr=False)
    """The exact text that is signed and sent."""
    state: DeliveryState
    attempts: int
    next_at: datetime
    """When it is due; of one that is being sent, when somebody else may try."""
    last_status: int | None
    last_error: str | None
    created_at: datetime
