"""The first tables: keys, episodes and their turns, evaluations, comparisons, stored answers.

Revision 0001, the first.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None
DROPS = "everything: keys, episodes, turns, evaluations, comparisons, kept answers"
"""What a downgrade loses."""


def upgrade() -> None:
    """To this revision."""
    op.create_table(
        "api_key",
        sa.Column("key_id", sa.String(length=32), nullable=False),
        sa.Column("lab_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("digest", sa.LargeBinary(length=32), nullable=False),
        sa.Column("plan", sa.String(length=32), nullable=False),
        sa.Column("rate_per_minute", sa.Integer(), nullable=True),
        sa.Column("collections", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("full_scores", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("key_id", name=op.f("pk_api_key")),
    )
    op.create_index("ix_api_key_lab_id", "api_key", ["lab_id"])

    op.create_table(
        "comparison",
        sa.Column("comparison_id", sa.String(length=40), nullable=False),
        sa.Column("lab_id", sa.String(length=64), nullable=False),
        sa.Column("collection", sa.String(length=128), nullable=False),
        sa.Column("scenario", sa.String(length=128), nullable=False),
        sa.Column("winner", sa.String(length=8), nullable=False),
        sa.Column("reward_a", sa.Float(), nullable=False),
        sa.Column("reward_b", sa.Float(), nullable=False),
        sa.Column("margin", sa.Float(), nullable=False),
        sa.Column("scores_a", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("scores_b", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("scoring_version", sa.String(length=32), nullable=False),
        sa.Column("agent_role", sa.String(length=16), nullable=False),
        sa.Column("reward_config", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("messages_a", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("messages_b", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("verdicts_a", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("verdicts_b", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("comparison_id", name=op.f("pk_comparison")),
    )
    op.create_table(
        "episode",
        sa.Column("episode_id", sa.String(length=40), nullable=False),
        sa.Column("lab_id", sa.String(length=64), nullable=False),
        sa.Column("collection", sa.String(length=128), nullable=False),
        sa.Column("scenario", sa.String(length=128), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("persona_slug", sa.String(length=128), nullable=False),
        sa.Column("observation_role", sa.String(length=16), nullable=False),
        sa.Column("score_turns", sa.Boolean(), nullable=False),
        sa.Column("reward_config", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("metadata", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("max_turns", sa.Integer(), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("persona_state", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("terminal_reason", sa.String(length=32), nullable=True),
        sa.Column("opening", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("active_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("status in ('active', 'complete')", name=op.f("ck_episode_status")),
        sa.CheckConstraint("turn >= 0 and turn <= max_turns", name=op.f("ck_episode_turn")),
        sa.PrimaryKeyConstraint("episode_id", name=op.f("pk_episode")),
    )
    op.create_index("ix_episode_page", "episode", ["lab_id", "created_at", "episode_id"])

    op.create_table(
        "evaluation",
        sa.Column("evaluation_id", sa.String(length=40), nullable=False),
        sa.Column("lab_id", sa.String(length=64), nullable=False),
        sa.Column("collection", sa.String(length=128), nullable=False),
        sa.Column("scenario", sa.String(length=128), nullable=False),
        sa.Column("reward", sa.Float(), nullable=False),
        sa.Column("scores", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("scoring_version", sa.String(length=32), nullable=False),
        sa.Column("normalization_key", sa.String(length=256), nullable=True),
        sa.Column("messages", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("agent_role", sa.String(length=16), nullable=False),
        sa.Column("reward_config", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("verdicts", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("source", sa.String(length=16), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("evaluation_id", name=op.f("pk_evaluation")),
    )
    op.create_index(
        "ix_evaluation_window", "evaluation", ["lab_id", "normalization_key", "created_at", "evaluation_id"]
    )

    op.create_table(
        "stored_answer",
        sa.Column("lab_id", sa.String(length=64), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("fingerprint", sa.String(length=128), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("body", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("lab_id", "key", name=op.f("pk_stored_answer")),
    )
    op.create_index("ix_stored_answer_created_at", "stored_answer", ["created_at"])

    op.create_table(
        "turn",
        sa.Column("episode_id", sa.String(length=40), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("agent_content", sa.Text(), nullable=False),
        sa.Column("tool_calls", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("observation", sa.Text(), nullable=False),
        sa.Column("reward", sa.Float(), nullable=False),
        sa.Column("scores", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("answer", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("fingerprint", sa.String(length=128), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["episode_id"], ["episode.episode_id"], name=op.f("fk_turn_episode_id_episode"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("episode_id", "turn", name=op.f("pk_turn")),
    )


def downgrade() -> None:
    """Back to an empty database. Dropping a table drops its indexes."""
    for table in ("turn", "stored_answer", "evaluation", "episode", "comparison", "api_key"):
        op.drop_table(table)
