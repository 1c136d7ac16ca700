"""The Labs reward server: personas played over HTTP, rewards from rubrics the agent never sees."""

__version__ = "0.1.0"
