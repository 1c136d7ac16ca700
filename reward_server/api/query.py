"""Base of the queries of calls."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class QueryModel(BaseModel):
    """A query string. Unknown parameters are refused: a misspelt filter that is ignored would return everything."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)
