"""The history of the database schema, as Alembic revisions. Run through `reward_server.store.migrate`."""
