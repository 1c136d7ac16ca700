"""The audit log; usage of labs, day by day; and limits of labs and keys.

Revision 0006, after 0005.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None
DROPS = "the audit log, what labs used, and the limits of labs and keys"
"""What a downgrade loses."""

_LIMITS = ("characters_per_day", "tokens_per_day", "nano_usd_per_day", "storage_bytes")
_SMALL_LIMITS = ("concurrency", "retention_days")


def upgrade() -> None:
    """To this revision."""
    op.create_table(
        "audit_event",
        sa.Column("event_id", sa.String(length=40), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("lab_id", sa.String(length=64), nullable=False),
        sa.Column("actor", sa.String(length=64), nullable=False),
        sa.Column("address", sa.String(length=64), nullable=False),
        sa.Column("action", sa.String(length=100), nullable=False),
        sa.Column("target", sa.String(length=200), nullable=False),
        sa.PrimaryKeyConstraint("event_id", name=op.f("pk_audit_event")),
    )
    op.create_index("ix_audit_event_page", "audit_event", ["at", "event_id"])
    op.create_table(
        "usage_day",
        sa.Column("lab_id", sa.String(length=64), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("requests", sa.BigInteger(), nullable=False),
        sa.Column("turns", sa.BigInteger(), nullable=False),
        sa.Column("evaluations", sa.BigInteger(), nullable=False),
        sa.Column("characters", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("lab_id", "day", name=op.f("pk_usage_day")),
    )
    for name in _LIMITS:
        op.add_column("lab", sa.Column(name, sa.BigInteger(), nullable=True))
    for name in _SMALL_LIMITS:
        op.add_column("lab", sa.Column(name, sa.Integer(), nullable=True))
    op.add_column("api_key", sa.Column("concurrency", sa.Integer(), nullable=True))


def downgrade() -> None:
    """Back to the revision before."""
    op.drop_column("api_key", "concurrency")
    for name in (*_SMALL_LIMITS, *_LIMITS):
        op.drop_column("lab", name)
    op.drop_table("usage_day")
    op.drop_table("audit_event")
