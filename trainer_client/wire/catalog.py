"""The catalog of scenarios to train on, as far as the public may know."""

from __future__ import annotations

from trainer_client.wire.base import ResponseModel
from trainer_client.wire.episodes import ToolDefinition


class ScenarioSummary(ResponseModel):
    """A scenario as the catalog shows it."""

    slug: str
    name: str
    description: str
    dimensions: list[str]
    max_turns: int
    tools: int
    splits: list[str] | None = None
    """What `config.split` may name; absent where the scenario is the same with every seed."""


class CollectionSummary(ResponseModel):
    """A collection as the catalog shows it."""

    slug: str
    name: str
    description: str
    version: str
    scenarios: list[ScenarioSummary]


class CatalogResponse(ResponseModel):
    """Answer of GET /catalog and /collections."""

    collections: list[CollectionSummary]
    request_id: str


class CollectionResponse(CollectionSummary):
    """Answer of GET /collections/{slug}."""

    request_id: str


class ScenarioResponse(ScenarioSummary):
    """Answer of GET /collections/{slug}/scenarios/{slug}: adds what `config.persona_slug` may be, and the tools."""

    personas: list[str]
    tool_definitions: list[ToolDefinition] | None = None
    request_id: str
