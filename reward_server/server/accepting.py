"""Accepting connections under the operating system's limit on open files.

There is a file for each connection, so the limit is raised as far as it may be, and connections are bounded to what is
left beside the server's own files.
"""

from __future__ import annotations

from reward_server.logs.logger import get_logger

OWN_FILES = 200
"""Of the database, its threads, logs, models and calls of providers."""

log = get_logger(__name__)


def room_for(connections: int) -> int:
    """So many of the connections that are wanted can be open at once."""
    try:
        import resource
    except ImportError:  # pragma: no cover (there is no such limit)
        return connections
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + OWN_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        if soft < wanted:
            log.warning("few_open_files", allowed=soft, connections=max(1, soft - OWN_FILES))
            return max(1, soft - OWN_FILES)
    return connections
