"""Migration environment that Alembic runs for every command.

`reward_server.store.migrate` hands in an open connection; an author on the command line hands in `-x url=`.
Either way the connection is in a transaction already, which both databases extend to schema changes: an interrupted
migration leaves the schema as it was. The command line is for SQLite; the server migrates both.
"""

from __future__ import annotations

from typing import Any, Literal

from alembic import context
from alembic.autogenerate.api import AutogenContext
from sqlalchemy import Connection
from sqlmodel import AutoString

from reward_server.store.columns import UtcDateTime
from reward_server.store.engine import open_migrating
from reward_server.store.tables import metadata


def render_item(kind: str, item: Any, _context: AutogenContext) -> str | Literal[False]:
    """Write our column types as plain SQLAlchemy ones: an old revision must not change when our code does."""
    if kind == "type" and isinstance(item, UtcDateTime):
        return "sa.DateTime(timezone=True)"
    if kind == "type" and isinstance(item, AutoString):
        return f"sa.String(length={item.length})"
    return False


def run(connection: Connection) -> None:
    """Run the command's revisions over this connection."""
    context.configure(
        connection=connection,
        target_metadata=metadata,
        render_as_batch=True,
        render_item=render_item,
        compare_type=True,
        compare_server_default=True,
    )
    with context.begin_transaction():
        context.run_migrations()


def run_from_command_line() -> None:
    """Open the database named on the command line."""
    with open_migrating(context.get_x_argument(as_dictionary=True)["url"], busy_timeout_s=10.0).begin() as connection:
        run(connection)


handed_in: Connection | None = context.config.attributes.get("connection")
if handed_in is None:
    run_from_command_line()
else:
    run(handed_in)
