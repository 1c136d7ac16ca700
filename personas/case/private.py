"""The base of all that an agent must never see."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

__all__ = ["PrivateModel"]


class PrivateModel(BaseModel):
    """Base of everything an agent must never see: its repr and its errors show no content."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: private>"

    __str__ = __repr__
