"""A Redis on a busy machine has longer to answer than the server gives it otherwise."""

from __future__ import annotations

PATIENCE_S = 20.0


def patient(url: str, most_s: float = PATIENCE_S) -> str:
    """The URL of a Redis that has so long to answer."""
    return f"{url}?socket_timeout={most_s}&socket_connect_timeout={most_s}"
