"""Files: JSONL in, for jobs to read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Path, Query, Request
from pydantic import Field

from reward_server.api import examples
from reward_server.api.access import for_keys
from reward_server.api.answers import JSON_LINES, answers
from reward_server.api.context import API_PREFIX, Body, answer, services_of
from reward_server.api.paging import PagedQuery, Pager
from reward_server.api.query import QueryModel
from reward_server.api.router import Router
from reward_server.auth.lab import Lab
from reward_server.auth.scopes import Scope
from reward_server.errors import BodyTooSlow, InvalidRequest
from reward_server.ids import IdPrefix
from reward_server.jobs.files import document
from reward_server.store.records import PageEnd
from trainer_client.wire import FileList, FileResponse

router = Router(prefix=API_PREFIX, tags=["jobs"])
FileId = Annotated[str, Path(description="`file_…`")]


_UPLOAD = {"requestBody": {"required": True, "content": {JSON_LINES: {"schema": {"type": "string"}}}}}


class UploadQuery(QueryModel):
    """Query of an upload."""

    name: str = Field(default="upload.jsonl", max_length=200, description="Name of the file.")


@router.post("/files", response_model=FileResponse, responses=answers(examples.FILE), openapi_extra=_UPLOAD)
async def upload_file(
    request: Request, lab: Annotated[Lab, for_keys(Scope.SCORE)], query: Annotated[UploadQuery, Query()]
) -> Body:
    """Store a JSONL file: one item in each line. The body is the file itself, sent as it is."""
    # Read here: it may be larger than memory, so it is stored as it comes, in parts.
    services = services_of(request)
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise InvalidRequest("Compressed bodies are not accepted.")
    return answer(request, await services.files.upload(lab, query.name, _parts(request)))


@router.get("/files", response_model=FileList, responses=answers(examples.FILE_LIST, 400))
async def list_files(
    request: Request, lab: Annotated[Lab, for_keys(Scope.SCORE)], query: Annotated[PagedQuery, Query()]
) -> Body:
    """The lab's files, newest first."""
    services = services_of(request)
    pager = Pager(services.cursors, lab.lab_id, IdPrefix.FILE)
    rows = await services.files.page(lab, query.limit + 1, pager.after(query.cursor))
    shown, following = pager.shown(rows, query.limit, lambda each: PageEnd(each.created_at, each.file_id))
    return answer(request, {"data": [document(row) for row in shown], **following})


@router.get("/files/{file_id}", response_model=FileResponse, responses=answers(examples.FILE, 404))
async def read_file(request: Request, lab: Annotated[Lab, for_keys(Scope.SCORE)], file_id: FileId) -> Body:
    """Return the metadata of a file."""
    return answer(request, await services_of(request).files.get(lab, file_id))


@router.delete("/files/{file_id}", response_model=FileResponse, responses=answers(examples.FILE, 404, 409))
async def delete_file(request: Request, lab: Annotated[Lab, for_keys(Scope.SCORE)], file_id: FileId) -> Body:
    """Forget a file that no open job reads; results of jobs stay."""
    return answer(request, await services_of(request).files.delete(lab, file_id))


async def _parts(request: Request) -> AsyncIterator[bytes]:
    """The body as it comes: every part has the time that a whole small body has."""
    deadline_s = services_of(request).settings.body_deadline_s
    stream = request.stream().__aiter__()
    while True:
        try:
            async with asyncio.timeout(deadline_s):
                yield await stream.__anext__()
        except TimeoutError:
            raise BodyTooSlow from None
        except StopAsyncIteration:
            return
