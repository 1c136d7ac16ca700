"""Training runs and their metrics.

Revision 0013, after 0012.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None
DROPS = "all training runs and their metrics; their folders stay until the next start of a server that knows runs"
"""What a downgrade loses."""


def upgrade() -> None:
    """To this revision."""
    op.create_table(
        "training_run",
        sa.Column("training_run_id", sa.String(length=40), nullable=False),
        sa.Column("lab_id", sa.String(length=64), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=True),
        sa.Column("config", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("client_metadata", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("steps", sa.Integer(), nullable=False),
        sa.Column("reward", sa.Float(), nullable=True),
        sa.Column("held_out_reward", sa.Float(), nullable=True),
        sa.Column("error", sa.String(length=500), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("training_run_id", name=op.f("pk_training_run")),
    )
    op.create_index("ix_training_run_page", "training_run", ["lab_id", "created_at", "training_run_id"])
    op.create_table(
        "training_metric",
        sa.Column("training_run_id", sa.String(length=40), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("lab_id", sa.String(length=64), nullable=False),
        sa.Column("record", sa.JSON(none_as_null=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["training_run_id"],
            ["training_run.training_run_id"],
            name=op.f("fk_training_metric_training_run_id_training_run"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("training_run_id", "step", "kind", name=op.f("pk_training_metric")),
    )


def downgrade() -> None:
    """Back to the revision before."""
    op.drop_table("training_metric")
    op.drop_table("training_run")
    # Nobody would know what such a job is.
    op.execute("DELETE FROM job WHERE type = 'train_policy'")
