"""Language models: what each lab spent on them, what they decided; and which API keys are operators'.

Revision 0002, after 0001.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None
DROPS = "what labs spent on language models, what those decided, and which keys are operators'"
"""What a downgrade loses."""


def upgrade() -> None:
    """To this revision."""
    op.create_table(
        "llm_spending",
        sa.Column("lab_id", sa.String(length=64), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("nano_usd", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("lab_id", "day", name=op.f("pk_llm_spending")),
    )
    op.create_table(
        "llm_verdicts",
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_llm_verdicts")),
    )
    op.create_index("ix_llm_verdicts_created_at", "llm_verdicts", ["created_at"])
    # Keys that exist become no operator's.
    op.add_column("api_key", sa.Column("operator", sa.Boolean(), server_default=sa.false(), nullable=False))


def downgrade() -> None:
    """Back to the revision before."""
    op.drop_column("api_key", "operator")
    op.drop_table("llm_verdicts")
    op.drop_table("llm_spending")
