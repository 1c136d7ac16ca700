"""Uploaded files, jobs and what became of their items.

Revision 0008, after 0007.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None
DROPS = "uploaded files, and jobs with their results"
"""What a downgrade loses."""


def upgrade() -> None:
    """To this revision."""
    moment = sa.DateTime(timezone=True)
    json = sa.JSON(none_as_null=True)
    op.create_table(
        "file",
        sa.Column("file_id", sa.String(length=40), nullable=False),
        sa.Column("lab_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("lines", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("is_complete", sa.Boolean(), nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("file_id", name=op.f("pk_file")),
    )
    op.create_index("ix_file_page", "file", ["lab_id", "created_at", "file_id"])
    op.create_table(
        "file_chunk",
        sa.Column("file_id", sa.String(length=40), nullable=False),
        sa.Column("first_line", sa.Integer(), nullable=False),
        sa.Column("lab_id", sa.String(length=64), nullable=False),
        sa.Column("lines", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["file_id"], ["file.file_id"], name=op.f("fk_file_chunk_file_id_file"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("file_id", "first_line", name=op.f("pk_file_chunk")),
    )
    op.create_table(
        "job",
        sa.Column("job_id", sa.String(length=40), nullable=False),
        sa.Column("lab_id", sa.String(length=64), nullable=False),
        sa.Column("key_id", sa.String(length=32), nullable=False),
        sa.Column("type", sa.String(length=32), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("file_id", sa.String(length=40), nullable=False),
        sa.Column("params", json, nullable=False),
        sa.Column("collections", json, nullable=True),
        sa.Column("full_scores", sa.Boolean(), nullable=False),
        sa.Column("scopes", json, nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("next_index", sa.Integer(), nullable=False),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("dead", sa.Integer(), nullable=False),
        sa.Column("error", sa.String(length=500), nullable=True),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("started_at", moment, nullable=True),
        sa.Column("finished_at", moment, nullable=True),
        sa.Column("served_at", moment, nullable=True),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_job")),
    )
    op.create_index("ix_job_page", "job", ["lab_id", "created_at", "job_id"])
    op.create_index("ix_job_status", "job", ["status", "served_at"])
    op.create_table(
        "job_item",
        sa.Column("job_id", sa.String(length=40), nullable=False),
        sa.Column("item_index", sa.Integer(), nullable=False),
        sa.Column("lab_id", sa.String(length=64), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("lease", sa.String(length=32), nullable=True),
        sa.Column("lease_until", moment, nullable=True),
        sa.Column("result", json, nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["job.job_id"], name=op.f("fk_job_item_job_id_job"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "item_index", name=op.f("pk_job_item")),
    )
    op.create_index("ix_job_item_state", "job_item", ["job_id", "state", "lease_until"])


def downgrade() -> None:
    """Back to the revision before."""
    for table in ("job_item", "job", "file_chunk", "file"):
        op.drop_table(table)
