"""Scenarios that a lab brings."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from trainer_client.wire.base import RequestModel, ResponseModel

FileName = Annotated[str, StringConstraints(min_length=1, max_length=128)]
FileText = Annotated[str, StringConstraints(max_length=262_144)]


class PushRequest(RequestModel):
    """POST /scenarios: a whole collection, as the files of its folder."""

    collection: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=60)]
    files: Annotated[dict[FileName, FileText], Field(min_length=1, max_length=100)]
    """By name: `collection.yaml`, `SLUG.yaml`, `SLUG.rubric.yaml`, `SLUG.logs.jsonl`, …"""


class OwnCollectionSummary(ResponseModel):
    """A version of a collection of one's own."""

    collection: str
    """What it is called in every call, once it has passed: `NAME@LAB`."""
    version: int
    status: Literal["checking", "passed", "failed"]
    digest: str
    created_at: str


class PushResponse(OwnCollectionSummary):
    """Answer of POST /scenarios and DELETE /scenarios/{collection}."""

    job_id: str | None = None
    """The check of a new version."""
    request_id: str


class OwnCollectionList(ResponseModel):
    """Answer of GET /scenarios: the newest version of each collection."""

    data: list[OwnCollectionSummary]
    request_id: str


class PulledCollection(OwnCollectionSummary):
    """Answer of GET /scenarios/{collection}: what was pushed, and what its check found."""

    files: dict[str, str]
    findings: list[str]
    request_id: str
