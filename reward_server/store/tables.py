"""The tables. Nothing outside this room and `migrations` imports them.

They describe the schema; statements are written in Core against `*.table`, because building ORM objects
costs more per turn than everything else a write does.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Date,
    ForeignKey,
    Index,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)
from sqlmodel import Field, SQLModel

from reward_server.store.columns import JSON_COLUMN, UtcDateTime

# Named constraints can be dropped by name in a later migration; SQLite's own are anonymous.
NAMING = {
    "ix": "ix_%(column_0_N_label)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
metadata = MetaData(naming_convention=NAMING)


class TableBase(SQLModel):
    """Base of the tables, on metadata of our own so that other SQLModel users cannot add to it."""

    metadata = metadata


def _moment(*, nullable: bool = False) -> Any:
    return Field(sa_column=Column(UtcDateTime(), nullable=nullable))


def _json(*, nullable: bool = False) -> Any:
    return Field(sa_column=Column(JSON_COLUMN, nullable=nullable))


def _number(*, nullable: bool = False) -> Any:
    return Field(sa_column=Column(BigInteger(), nullable=nullable))


def _text() -> Any:
    return Field(sa_column=Column(Text(), nullable=False))


class LabTable(TableBase, table=True):
    """`LabRow`."""

    __tablename__ = "lab"

    lab_id: str = Field(primary_key=True, max_length=64)
    name: str = Field(max_length=200)
    created_at: datetime = _moment()
    characters_per_day: int | None = _number(nullable=True)
    tokens_per_day: int | None = _number(nullable=True)
    nano_usd_per_day: int | None = _number(nullable=True)
    storage_bytes: int | None = _number(nullable=True)
    concurrency: int | None
    retention_days: int | None


class AuditEventTable(TableBase, table=True):
    """`AuditRow`."""

    __tablename__ = "audit_event"
    __table_args__ = (Index("ix_audit_event_page", "at", "event_id"),)

    event_id: str = Field(primary_key=True, max_length=40)
    at: datetime = _moment()
    lab_id: str = Field(max_length=64)
    actor: str = Field(max_length=64)
    address: str = Field(max_length=64)
    action: str = Field(max_length=100)
    target: str = Field(max_length=200)


class UsageTable(TableBase, table=True):
    """`UsageRow`."""

    __tablename__ = "usage_day"

    lab_id: str = Field(primary_key=True, max_length=64)
    day: date = Field(sa_column=Column(Date(), primary_key=True))
    requests: int = _number()
    turns: int = _number()
    evaluations: int = _number()
    characters: int = _number()


class ApiKeyTable(TableBase, table=True):
    """`KeyRow`."""

    __tablename__ = "api_key"

    key_id: str = Field(primary_key=True, max_length=32)
    lab_id: str = Field(max_length=64, index=True)
    name: str = Field(max_length=200)
    digest: bytes = Field(sa_column=Column(LargeBinary(32), nullable=False))
    plan: str = Field(max_length=32)
    rate_per_minute: int | None
    collections: list[str] | None = _json(nullable=True)
    full_scores: bool
    scopes: str = Field(sa_column=Column(String(100), nullable=False, server_default="train score export label"))
    """Words with a space between them."""
    concurrency: int | None
    created_at: datetime = _moment()
    revoked_at: datetime | None = _moment(nullable=True)
    expires_at: datetime | None = _moment(nullable=True)
    last_used_at: datetime | None = _moment(nullable=True)


class EpisodeTable(TableBase, table=True):
    """`EpisodeRow`."""

    __tablename__ = "episode"
    __table_args__ = (
        CheckConstraint("status in ('active', 'complete')", name="status"),
        CheckConstraint("turn >= 0 and turn <= max_turns", name="turn"),
        Index("ix_episode_page", "lab_id", "created_at", "episode_id"),
    )

    episode_id: str = Field(primary_key=True, max_length=40)
    lab_id: str = Field(max_length=64)
    collection: str = Field(max_length=128)
    scenario: str = Field(max_length=128)
    seed: int = Field(sa_column=Column(BigInteger(), nullable=False))
    persona_slug: str = Field(max_length=128)
    observation_role: str = Field(max_length=16)
    score_turns: bool
    reward_config: dict[str, Any] | None = _json(nullable=True)
    client_metadata: dict[str, Any] | None = Field(sa_column=Column("metadata", JSON_COLUMN, nullable=True))
    max_turns: int
    turn: int
    persona_state: dict[str, Any] = _json()
    status: str = Field(max_length=16)
    terminal_reason: str | None = Field(max_length=32)
    opening: str = _text()
    created_at: datetime = _moment()
    active_at: datetime = _moment()


class TurnTable(TableBase, table=True):
    """`TurnRow`. The primary key is what makes a doubled turn impossible."""

    __tablename__ = "turn"

    episode_id: str = Field(
        sa_column=Column(String(40), ForeignKey("episode.episode_id", ondelete="CASCADE"), primary_key=True)
    )
    turn: int = Field(primary_key=True)
    agent_content: str = _text()
    tool_calls: list[dict[str, Any]] | None = _json(nullable=True)
    observation: str = _text()
    reward: float
    scores: dict[str, float] | None = _json(nullable=True)
    answer: dict[str, Any] = _json()
    fingerprint: str = Field(max_length=128)
    created_at: datetime = _moment()


class EvaluationTable(TableBase, table=True):
    """`EvaluationRow`."""

    __tablename__ = "evaluation"
    __table_args__ = (
        Index("ix_evaluation_window", "lab_id", "normalization_key", "created_at", "evaluation_id"),
        Index("ix_evaluation_page", "lab_id", "created_at", "evaluation_id"),
    )

    evaluation_id: str = Field(primary_key=True, max_length=40)
    lab_id: str = Field(max_length=64)
    collection: str = Field(max_length=128)
    scenario: str = Field(max_length=128)
    reward: float
    scores: dict[str, float] | None = _json(nullable=True)
    scoring_version: str = Field(max_length=32)
    normalization_key: str | None = Field(max_length=256)
    messages: list[dict[str, Any]] = _json()
    agent_role: str = Field(max_length=16)
    reward_config: dict[str, Any] | None = _json(nullable=True)
    verdicts: list[dict[str, Any]] = _json()
    source: str = Field(max_length=16)
    created_at: datetime = _moment()
    answer: dict[str, Any] | None = _json(nullable=True)


class ComparisonTable(TableBase, table=True):
    """`ComparisonRow`."""

    __tablename__ = "comparison"
    __table_args__ = (Index("ix_comparison_page", "lab_id", "created_at", "comparison_id"),)

    comparison_id: str = Field(primary_key=True, max_length=40)
    lab_id: str = Field(max_length=64)
    collection: str = Field(max_length=128)
    scenario: str = Field(max_length=128)
    winner: str = Field(max_length=8)
    reward_a: float
    reward_b: float
    margin: float
    scores_a: dict[str, float] | None = _json(nullable=True)
    scores_b: dict[str, float] | None = _json(nullable=True)
    scoring_version: str = Field(max_length=32)
    agent_role: str = Field(max_length=16)
    reward_config: dict[str, Any] | None = _json(nullable=True)
    messages_a: list[dict[str, Any]] = _json()
    messages_b: list[dict[str, Any]] = _json()
    verdicts_a: list[dict[str, Any]] = _json()
    verdicts_b: list[dict[str, Any]] = _json()
    created_at: datetime = _moment()


class PreferenceTable(TableBase, table=True):
    """`PreferenceRow`."""

    __tablename__ = "preference"
    __table_args__ = (Index("ix_preference_page", "lab_id", "created_at", "preference_id"),)

    preference_id: str = Field(primary_key=True, max_length=40)
    lab_id: str = Field(max_length=64)
    comparison_id: str | None = Field(max_length=40)
    collection: str = Field(max_length=128)
    scenario: str = Field(max_length=128)
    winner: str = Field(max_length=8)
    margin: float | None
    labeller: str | None = Field(max_length=128)
    reward_a: float | None
    reward_b: float | None
    scoring_version: str | None = Field(max_length=32)
    agent_role: str = Field(max_length=16)
    messages_a: list[dict[str, Any]] = _json()
    messages_b: list[dict[str, Any]] = _json()
    created_at: datetime = _moment()
    note: str | None = Field(sa_column=Column(Text(), nullable=True))


class CriterionLabelTable(TableBase, table=True):
    """`CriterionLabelRow`."""

    __tablename__ = "criterion_label"
    __table_args__ = (
        Index("ix_criterion_label_page", "lab_id", "created_at", "label_id"),
        Index("ix_criterion_label_conversation", "lab_id", "conversation_id"),
    )

    label_id: str = Field(primary_key=True, max_length=40)
    lab_id: str = Field(max_length=64)
    conversation_id: str = Field(max_length=40)
    collection: str = Field(max_length=128)
    scenario: str = Field(max_length=128)
    criterion: str = Field(max_length=80)
    dimension: str = Field(max_length=64)
    worth: str = Field(max_length=8)
    met: bool
    quote: str | None = Field(sa_column=Column(Text(), nullable=True))
    labeller: str | None = Field(max_length=128)
    note: str | None = Field(sa_column=Column(Text(), nullable=True))
    status: str = Field(max_length=16)
    value: float | None
    judge: str = Field(max_length=64)
    reward: float
    scoring_version: str = Field(max_length=32)
    created_at: datetime = _moment()


class AnswerTable(TableBase, table=True):
    """`StoredAnswer`."""

    __tablename__ = "stored_answer"

    lab_id: str = Field(primary_key=True, max_length=64)
    key: str = Field(primary_key=True, max_length=255)
    fingerprint: str = Field(max_length=128)
    status: int
    body: dict[str, Any] = _json()
    created_at: datetime = Field(sa_column=Column(UtcDateTime(), nullable=False, index=True))


class WebhookTable(TableBase, table=True):
    """`WebhookRow`."""

    __tablename__ = "webhook"

    webhook_id: str = Field(primary_key=True, max_length=40)
    lab_id: str = Field(max_length=64, index=True)
    url: str = Field(max_length=2048)
    events: list[str] = _json()
    description: str | None = Field(max_length=200)
    created_at: datetime = _moment()
    disabled_at: datetime | None = _moment(nullable=True)


class WebhookDeliveryTable(TableBase, table=True):
    """`DeliveryRow`."""

    __tablename__ = "webhook_delivery"
    __table_args__ = (
        CheckConstraint("state in ('pending', 'delivered', 'dead')", name="state"),
        Index("ix_webhook_delivery_page", "lab_id", "webhook_id", "created_at", "message_id"),
        Index("ix_webhook_delivery_due", "state", "next_at"),
    )

    message_id: str = Field(primary_key=True, max_length=40)
    webhook_id: str = Field(
        sa_column=Column(String(40), ForeignKey("webhook.webhook_id", ondelete="CASCADE"), nullable=False)
    )
    lab_id: str = Field(max_length=64)
    event: str = Field(max_length=64)
    body: str = _text()
    state: str = Field(max_length=16)
    attempts: int
    next_at: datetime = _moment()
    last_status: int | None
    last_error: str | None = Field(max_length=64)
    created_at: datetime = _moment()


class LlmSpendingTable(TableBase, table=True):
    """The settled spending of a lab on language models in a day (UTC)."""

    __tablename__ = "llm_spending"

    lab_id: str = Field(primary_key=True, max_length=64)
    day: date = Field(sa_column=Column(Date(), primary_key=True))
    tokens: int = Field(sa_column=Column(BigInteger(), nullable=False))
    nano_usd: int = Field(sa_column=Column(BigInteger(), nullable=False))
    calls: int = Field(sa_column=Column(BigInteger(), nullable=False, server_default="0"))


class LlmBookingTable(TableBase, table=True):
    """The most that a question on its way may cost, until it is settled or has run out."""

    __tablename__ = "llm_bookings"
    __table_args__ = (Index("ix_llm_bookings_lab_day", "lab_id", "day"),)

    booking_id: str = Field(primary_key=True, max_length=32)
    lab_id: str = Field(max_length=64)
    day: date = Field(sa_column=Column(Date(), nullable=False))
    tokens: int = Field(sa_column=Column(BigInteger(), nullable=False))
    nano_usd: int = Field(sa_column=Column(BigInteger(), nullable=False))
    runs_out_at: datetime = Field(sa_column=Column(UtcDateTime(), nullable=False, index=True))


class LlmVerdictTable(TableBase, table=True):
    """The decision of a language model, by a hash of everything that it depends on."""

    __tablename__ = "llm_verdicts"

    key: str = Field(primary_key=True, max_length=64)
    body: str = _text()
    created_at: datetime = Field(sa_column=Column(UtcDateTime(), nullable=False, index=True))


class ServerFactTable(TableBase, table=True):
    """A fact that a server must not forget, by name."""

    __tablename__ = "server"

    name: str = Field(primary_key=True, max_length=64)
    value: str = Field(max_length=255)


class FileTable(TableBase, table=True):
    """`FileRow`."""

    __tablename__ = "file"
    __table_args__ = (Index("ix_file_page", "lab_id", "created_at", "file_id"),)

    file_id: str = Field(primary_key=True, max_length=40)
    lab_id: str = Field(max_length=64)
    name: str = Field(max_length=200)
    size_bytes: int = Field(sa_column=Column(BigInteger(), nullable=False))
    lines: int
    digest: str = Field(max_length=64)
    is_complete: bool
    created_at: datetime = _moment()
    collections: list[str] | None = _json(nullable=True)


class FileChunkTable(TableBase, table=True):
    """`Chunk`."""

    __tablename__ = "file_chunk"

    file_id: str = Field(sa_column=Column(String(40), ForeignKey("file.file_id", ondelete="CASCADE"), primary_key=True))
    first_line: int = Field(primary_key=True)
    lab_id: str = Field(max_length=64)
    lines: int
    data: bytes = Field(sa_column=Column(LargeBinary(), nullable=False))


class JobTable(TableBase, table=True):
    """`JobRow`."""

    __tablename__ = "job"
    __table_args__ = (
        Index("ix_job_page", "lab_id", "created_at", "job_id"),
        Index("ix_job_status", "status", "served_at"),
    )

    job_id: str = Field(primary_key=True, max_length=40)
    lab_id: str = Field(max_length=64)
    key_id: str = Field(max_length=32)
    type: str = Field(max_length=32)
    status: str = Field(max_length=16)
    file_id: str = Field(max_length=40)
    params: dict[str, Any] = _json()
    collections: list[str] | None = _json(nullable=True)
    full_scores: bool
    scopes: list[str] = _json()
    total: int
    next_index: int
    done: int
    failed: int
    dead: int
    error: str | None = Field(max_length=500)
    created_at: datetime = _moment()
    started_at: datetime | None = _moment(nullable=True)
    finished_at: datetime | None = _moment(nullable=True)
    served_at: datetime | None = _moment(nullable=True)
    rests_until: datetime | None = _moment(nullable=True)
    rests_for: str | None = Field(max_length=32)


class JobItemTable(TableBase, table=True):
    """An item that somebody has begun. The primary key is what makes a doubled result impossible."""

    __tablename__ = "job_item"
    __table_args__ = (Index("ix_job_item_state", "job_id", "state", "lease_until"),)

    job_id: str = Field(sa_column=Column(String(40), ForeignKey("job.job_id", ondelete="CASCADE"), primary_key=True))
    item_index: int = Field(primary_key=True)
    lab_id: str = Field(max_length=64)
    state: str = Field(max_length=16)
    attempts: int
    lease: str | None = Field(max_length=32)
    lease_until: datetime | None = _moment(nullable=True)
    result: dict[str, Any] | None = _json(nullable=True)


class AgentTable(TableBase, table=True):
    """`AgentRow`."""

    __tablename__ = "agent"
    __table_args__ = (Index("ix_agent_lab", "lab_id", "created_at", "agent_id"),)

    agent_id: str = Field(primary_key=True, max_length=40)
    lab_id: str = Field(max_length=64)
    kind: str = Field(max_length=16)
    name: str = Field(max_length=100)
    settings: dict[str, Any] = _json()
    sealed_key: str | None = Field(sa_column=Column(Text(), nullable=True))
    created_at: datetime = _moment()


_STANDING = ("lab_id", "collection", "scoring_version", "agent_id", "scenario", "seed", "reward")
"""All that the leaderboard reads."""


class AgentEpisodeTable(TableBase, table=True):
    """`AgentEpisodeRow`. The primary key is what makes an item that counts twice impossible."""

    __tablename__ = "agent_episode"
    __table_args__ = (
        Index("ix_agent_episode_standing", *_STANDING),
        Index("ix_agent_episode_agent", "agent_id"),
    )

    job_id: str = Field(primary_key=True, max_length=40)
    item_index: int = Field(primary_key=True)
    lab_id: str = Field(max_length=64)
    agent_id: str = Field(
        sa_column=Column(String(40), ForeignKey("agent.agent_id", ondelete="CASCADE"), nullable=False)
    )
    episode_id: str = Field(max_length=40)
    collection: str = Field(max_length=128)
    scenario: str = Field(max_length=128)
    seed: int = _number()
    reward: float
    scoring_version: str = Field(max_length=64)
    created_at: datetime = _moment()


class TrainingRunTable(TableBase, table=True):
    """`TrainingRunRow`."""

    __tablename__ = "training_run"
    __table_args__ = (Index("ix_training_run_page", "lab_id", "created_at", "training_run_id"),)

    training_run_id: str = Field(primary_key=True, max_length=40)
    lab_id: str = Field(max_length=64)
    status: str = Field(max_length=16)
    name: str | None = Field(max_length=100)
    config: dict[str, Any] = _json()
    client_metadata: dict[str, Any] | None = _json(nullable=True)
    collections: list[str] | None = _json(nullable=True)
    step: int
    steps: int
    reward: float | None
    held_out_reward: float | None
    error: str | None = Field(max_length=500)
    created_at: datetime = _moment()
    started_at: datetime | None = _moment(nullable=True)
    finished_at: datetime | None = _moment(nullable=True)


class TrainingMetricTable(TableBase, table=True):
    """`MetricRow`."""

    __tablename__ = "training_metric"

    training_run_id: str = Field(
        sa_column=Column(String(40), ForeignKey("training_run.training_run_id", ondelete="CASCADE"), primary_key=True)
    )
    step: int = Field(primary_key=True)
    kind: str = Field(primary_key=True, max_length=16)
    lab_id: str = Field(max_length=64)
    record: dict[str, Any] = _json()


class OwnCollectionTable(TableBase, table=True):
    """`OwnCollectionRow`."""

    __tablename__ = "own_collection"

    lab_id: str = Field(primary_key=True, max_length=64)
    slug: str = Field(primary_key=True, max_length=64)
    version: int = Field(primary_key=True)
    status: str = Field(max_length=16)
    digest: str = Field(max_length=64)
    files: dict[str, Any] = _json()
    findings: list[str] = _json()
    created_at: datetime = _moment()


def table_of(row: type[TableBase]) -> Table:
    """The Core table of a class above."""
    return metadata.tables[str(row.__tablename__)]
