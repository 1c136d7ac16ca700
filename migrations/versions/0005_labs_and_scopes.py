"""Labs are rows of their own, and keys have scopes: what was an operator's key may operate, others may not.

Revision 0005, after 0004.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None
DROPS = "the scopes of keys: one with fewer may be used for everything again; labs without a key"
"""What a downgrade loses."""

_USUAL = "train score export label"
_OWNERS = ("api_key", "episode", "evaluation", "comparison", "llm_spending")
"""Tables that name a lab."""


def upgrade() -> None:
    """To this revision."""
    op.create_table(
        "lab",
        sa.Column("lab_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("lab_id", name=op.f("pk_lab")),
    )
    known = " UNION ".join(f"SELECT lab_id FROM {table}" for table in _OWNERS)  # noqa: S608 (names of our own)
    op.execute(f"INSERT INTO lab (lab_id, name, created_at) SELECT lab_id, '', CURRENT_TIMESTAMP FROM ({known}) AS k")  # noqa: S608
    op.add_column("api_key", sa.Column("scopes", sa.String(length=100), server_default=_USUAL, nullable=False))
    op.execute(f"UPDATE api_key SET scopes = '{_USUAL} operate' WHERE operator")  # noqa: S608
    op.drop_column("api_key", "operator")


def downgrade() -> None:
    """Back to the revision before."""
    op.add_column("api_key", sa.Column("operator", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.execute("UPDATE api_key SET operator = (scopes LIKE '%operate%')")
    op.drop_column("api_key", "scopes")
    op.drop_table("lab")
