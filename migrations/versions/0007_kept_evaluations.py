"""Evaluations keep the answer that was given, for `GET /evaluations/{id}`.

Revision 0007, after 0006.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None
DROPS = "the answers of evaluations, but for their rewards and scores"
"""What a downgrade loses."""


def upgrade() -> None:
    """To this revision."""
    op.add_column("evaluation", sa.Column("answer", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    """Back to the revision before."""
    op.drop_column("evaluation", "answer")
