"""One outcome of `labs doctor`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CheckFinding:
    """The outcome of one check; `mend` is set when something is wrong."""

    name: str
    detail: str
    mend: str | None = None
    is_warning: bool = False
    """Whether the server runs all the same."""

    @property
    def mark(self) -> str:
        """The sign in front of its line."""
        return "✓" if self.mend is None else "!" if self.is_warning else "✗"
