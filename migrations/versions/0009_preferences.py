"""Preferences of people; pages of comparisons.

Revision 0009, after 0008.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None
DROPS = "all human preferences"
"""What a downgrade loses."""


def upgrade() -> None:
    """To this revision."""
    op.create_table(
        "preference",
        sa.Column("preference_id", sa.String(length=40), nullable=False),
        sa.Column("lab_id", sa.String(length=64), nullable=False),
        sa.Column("comparison_id", sa.String(length=40), nullable=True),
        sa.Column("collection", sa.String(length=128), nullable=False),
        sa.Column("scenario", sa.String(length=128), nullable=False),
        sa.Column("winner", sa.String(length=8), nullable=False),
        sa.Column("margin", sa.Float(), nullable=True),
        sa.Column("labeller", sa.String(length=128), nullable=True),
        sa.Column("reward_a", sa.Float(), nullable=True),
        sa.Column("reward_b", sa.Float(), nullable=True),
        sa.Column("scoring_version", sa.String(length=32), nullable=True),
        sa.Column("agent_role", sa.String(length=16), nullable=False),
        sa.Column("messages_a", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("messages_b", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("preference_id", name=op.f("pk_preference")),
    )
    op.create_index("ix_preference_page", "preference", ["lab_id", "created_at", "preference_id"])
    op.create_index("ix_comparison_page", "comparison", ["lab_id", "created_at", "comparison_id"])


def downgrade() -> None:
    """Back to the revision before."""
    op.drop_index("ix_comparison_page", table_name="comparison")
    op.drop_table("preference")
