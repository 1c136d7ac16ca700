"""Indexes for lists of many rows: evaluations by time, and all that the leaderboard reads.

Revision 0019, after 0018.
"""

from __future__ import annotations

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None
DROPS = "nothing: indexes alone"
"""What a downgrade loses."""

STANDING = ["lab_id", "collection", "scoring_version", "agent_id"]


def upgrade() -> None:
    """To this revision."""
    op.create_index("ix_evaluation_page", "evaluation", ["lab_id", "created_at", "evaluation_id"])
    op.drop_index("ix_agent_episode_standing", table_name="agent_episode")
    op.create_index("ix_agent_episode_standing", "agent_episode", [*STANDING, "scenario", "seed", "reward"])


def downgrade() -> None:
    """Back to the revision before."""
    op.drop_index("ix_agent_episode_standing", table_name="agent_episode")
    op.create_index("ix_agent_episode_standing", "agent_episode", STANDING)
    op.drop_index("ix_evaluation_page", table_name="evaluation")
