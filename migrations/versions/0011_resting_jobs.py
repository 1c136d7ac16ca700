"""Jobs that wait for their lab's next day say until when, and for what.

Revision 0011, after 0010.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None
DROPS = "what jobs wait for; they go on at once"
"""What a downgrade loses."""


def upgrade() -> None:
    """To this revision."""
    op.add_column("job", sa.Column("rests_until", sa.DateTime(timezone=True), nullable=True))
    op.add_column("job", sa.Column("rests_for", sa.String(length=32), nullable=True))


def downgrade() -> None:
    """Back to the revision before."""
    op.drop_column("job", "rests_for")
    op.drop_column("job", "rests_until")
