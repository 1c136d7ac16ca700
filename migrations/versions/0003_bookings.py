"""Language models: what questions on their way may cost, apart from what was spent; and how many calls there were.

Revision 0003, after 0002.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None
DROPS = "how many calls of language models there were, and bookings of calls on their way"
"""What a downgrade loses."""


def upgrade() -> None:
    """To this revision."""
    op.create_table(
        "llm_bookings",
        sa.Column("booking_id", sa.String(length=32), nullable=False),
        sa.Column("lab_id", sa.String(length=64), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("nano_usd", sa.BigInteger(), nullable=False),
        sa.Column("runs_out_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("booking_id", name=op.f("pk_llm_bookings")),
    )
    op.create_index("ix_llm_bookings_lab_day", "llm_bookings", ["lab_id", "day"])
    op.create_index("ix_llm_bookings_runs_out_at", "llm_bookings", ["runs_out_at"])
    # Calls before this revision were not counted.
    op.add_column("llm_spending", sa.Column("calls", sa.BigInteger(), server_default="0", nullable=False))


def downgrade() -> None:
    """Back to the revision before."""
    op.drop_column("llm_spending", "calls")
    op.drop_table("llm_bookings")
