"""The database: tables and queries behind one engine. Only records leave this room."""
