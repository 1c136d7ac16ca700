"""Collections that the key might use which uploaded a file or started a training run.

Revision 0015, after 0014.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None
DROPS = "which collections the keys of uploaded files and training runs might use"
"""What a downgrade loses."""


def upgrade() -> None:
    """To this revision."""
    for table in ("file", "training_run"):
        op.add_column(table, sa.Column("collections", sa.JSON(none_as_null=True), nullable=True))
    # The job of a run has its id, and the collections of its key. Of files nobody knows: null means all.
    op.execute(
        "UPDATE training_run SET collections ="
        " (SELECT job.collections FROM job WHERE job.job_id = training_run.training_run_id)"
    )


def downgrade() -> None:
    """Back to the revision before."""
    for table in ("training_run", "file"):
        op.drop_column(table, "collections")
