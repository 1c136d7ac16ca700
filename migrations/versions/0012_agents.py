"""Agents, and the episodes they played in jobs.

Revision 0012, after 0011.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None
DROPS = "all agents, the keys of their endpoints, and the leaderboard; the episodes stay"
"""What a downgrade loses."""


def upgrade() -> None:
    """To this revision."""
    op.create_table(
        "agent",
        sa.Column("agent_id", sa.String(length=40), nullable=False),
        sa.Column("lab_id", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("settings", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("sealed_key", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("agent_id", name=op.f("pk_agent")),
    )
    op.create_index("ix_agent_lab", "agent", ["lab_id", "created_at", "agent_id"])
    op.create_table(
        "agent_episode",
        sa.Column("job_id", sa.String(length=40), nullable=False),
        sa.Column("item_index", sa.Integer(), nullable=False),
        sa.Column("lab_id", sa.String(length=64), nullable=False),
        sa.Column("agent_id", sa.String(length=40), nullable=False),
        sa.Column("episode_id", sa.String(length=40), nullable=False),
        sa.Column("collection", sa.String(length=128), nullable=False),
        sa.Column("scenario", sa.String(length=128), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("reward", sa.Float(), nullable=False),
        sa.Column("scoring_version", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["agent_id"], ["agent.agent_id"], name=op.f("fk_agent_episode_agent_id_agent"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job_id", "item_index", name=op.f("pk_agent_episode")),
    )
    op.create_index(
        "ix_agent_episode_standing", "agent_episode", ["lab_id", "collection", "scoring_version", "agent_id"]
    )
    op.create_index("ix_agent_episode_agent", "agent_episode", ["agent_id"])


def downgrade() -> None:
    """Back to the revision before."""
    op.drop_table("agent_episode")
    op.drop_table("agent")
