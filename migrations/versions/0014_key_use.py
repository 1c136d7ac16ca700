"""The last use of a key.

Revision 0014, after 0013.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None
DROPS = "when keys were last used"
"""What a downgrade loses."""


def upgrade() -> None:
    """To this revision."""
    op.add_column("api_key", sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    """Back to the revision before."""
    op.drop_column("api_key", "last_used_at")
