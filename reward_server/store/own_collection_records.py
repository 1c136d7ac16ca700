"""What goes in and out of the store of labs' own scenarios."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class CheckStatus(StrEnum):
    """How the check of a version stands."""

    CHECKING = "checking"
    PASSED = "passed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class InUse:
    """Which version of a collection is in use."""

    lab_id: str
    slug: str
    version: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCollectionRow:
    """One version of a collection that a lab brought."""

    lab_id: str
    slug: str
    version: int
    status: CheckStatus
    digest: str
    """Over the contents of its files."""
    files: dict[str, str] = field(repr=False)
    """Name -> text."""
    findings: list[str] = field(repr=False)
    """What the check says, for its author alone."""
    created_at: datetime
