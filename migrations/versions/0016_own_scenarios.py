"""Scenarios that labs bring: each push of a collection is a version with its files and what its check found.

Revision 0016, after 0015.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None
DROPS = "the scenarios that labs brought; what was scored by them stays"
"""What a downgrade loses."""


def upgrade() -> None:
    """To this revision."""
    op.create_table(
        "own_collection",
        sa.Column("lab_id", sa.String(length=64), nullable=False),
        sa.Column("slug", sa.String(length=64), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("files", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("findings", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("lab_id", "slug", "version", name=op.f("pk_own_collection")),
    )


def downgrade() -> None:
    """Back to the revision before."""
    op.drop_table("own_collection")
