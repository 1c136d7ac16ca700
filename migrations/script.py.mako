"""${message}

Revision ${up_revision} after ${down_revision | comma,n}, ${create_date}.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
${imports if imports else ""}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}
DROPS = "name what a downgrade loses"
"""What a downgrade loses."""


def upgrade() -> None:
    """To this revision."""
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    """Back from this revision."""
    ${downgrades if downgrades else "pass"}
