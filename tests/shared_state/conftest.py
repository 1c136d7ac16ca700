"""A real store, as for who calls."""

from __future__ import annotations

from tests.auth.conftest import store

__all__ = ["store"]
