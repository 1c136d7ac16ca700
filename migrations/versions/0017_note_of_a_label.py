"""What a person notes beside a label.

Revision 0017, after 0016.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None
DROPS = "the notes of labels"
"""What a downgrade loses."""


def upgrade() -> None:
    """To this revision."""
    op.add_column("preference", sa.Column("note", sa.Text(), nullable=True))


def downgrade() -> None:
    """Back to the revision before."""
    op.drop_column("preference", "note")
