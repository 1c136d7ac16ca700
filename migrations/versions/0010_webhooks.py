"""Webhooks, and the messages to them.

Revision 0010, after 0009.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None
DROPS = "all webhooks and messages to them"
"""What a downgrade loses."""


def upgrade() -> None:
    """To this revision."""
    op.create_table(
        "webhook",
        sa.Column("webhook_id", sa.String(length=40), nullable=False),
        sa.Column("lab_id", sa.String(length=64), nullable=False),
        sa.Column("url", sa.String(length=2048), nullable=False),
        sa.Column("events", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("description", sa.String(length=200), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("disabled_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("webhook_id", name=op.f("pk_webhook")),
    )
    op.create_index(op.f("ix_webhook_lab_id"), "webhook", ["lab_id"])
    op.create_table(
        "webhook_delivery",
        sa.Column("message_id", sa.String(length=40), nullable=False),
        sa.Column("webhook_id", sa.String(length=40), nullable=False),
        sa.Column("lab_id", sa.String(length=64), nullable=False),
        sa.Column("event", sa.String(length=64), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_status", sa.Integer(), nullable=True),
        sa.Column("last_error", sa.String(length=64), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("state in ('pending', 'delivered', 'dead')", name=op.f("ck_webhook_delivery_state")),
        sa.ForeignKeyConstraint(
            ["webhook_id"],
            ["webhook.webhook_id"],
            name=op.f("fk_webhook_delivery_webhook_id_webhook"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("message_id", name=op.f("pk_webhook_delivery")),
    )
    page = ["lab_id", "webhook_id", "created_at", "message_id"]
    op.create_index("ix_webhook_delivery_page", "webhook_delivery", page)
    op.create_index("ix_webhook_delivery_due", "webhook_delivery", ["state", "next_at"])


def downgrade() -> None:
    """Back to the revision before."""
    op.drop_table("webhook_delivery")
    op.drop_table("webhook")
