"""Facts that a server must not forget: the fingerprint of its keys' pepper; and when keys run out.

Revision 0004, after 0003.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None
DROPS = "when keys run out (they would work for ever), and the fingerprint of the pepper"
"""What a downgrade loses."""


def upgrade() -> None:
    """To this revision."""
    op.create_table(
        "server",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.String(length=255), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_server")),
    )
    op.add_column("api_key", sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    """Back to the revision before."""
    op.drop_column("api_key", "expires_at")
    op.drop_table("server")
