"""The server of the contract tests."""

from tests.contract.conftest import data, empty_database, library, matcher

__all__ = ["data", "empty_database", "library", "matcher"]
