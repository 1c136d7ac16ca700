"""What people say of single criteria.

Revision 0018, after 0017.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from reward_server.store.columns import UtcDateTime

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None
DROPS = "the labels of criteria"
"""What a downgrade loses."""


def upgrade() -> None:
    """To this revision."""
    op.create_table(
        "criterion_label",
        sa.Column("label_id", sa.String(length=40), nullable=False),
        sa.Column("lab_id", sa.String(length=64), nullable=False),
        sa.Column("conversation_id", sa.String(length=40), nullable=False),
        sa.Column("collection", sa.String(length=128), nullable=False),
        sa.Column("scenario", sa.String(length=128), nullable=False),
        sa.Column("criterion", sa.String(length=80), nullable=False),
        sa.Column("dimension", sa.String(length=64), nullable=False),
        sa.Column("worth", sa.String(length=8), nullable=False),
        sa.Column("met", sa.Boolean(), nullable=False),
        sa.Column("quote", sa.Text(), nullable=True),
        sa.Column("labeller", sa.String(length=128), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("value", sa.Float(), nullable=True),
        sa.Column("judge", sa.String(length=64), nullable=False),
        sa.Column("reward", sa.Float(), nullable=False),
        sa.Column("scoring_version", sa.String(length=32), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("label_id", name=op.f("pk_criterion_label")),
    )
    op.create_index("ix_criterion_label_page", "criterion_label", ["lab_id", "created_at", "label_id"])
    op.create_index("ix_criterion_label_conversation", "criterion_label", ["lab_id", "conversation_id"])


def downgrade() -> None:
    """Back to the revision before."""
    op.drop_table("criterion_label")
