"""Messages of every origin become one transcript here; tool calls, limits and revisions with it."""
