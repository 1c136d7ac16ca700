"""Files: JSONL in, for jobs to read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Path, Query, Request, Response
from pydantic import Field

from reward_server.api import body, examples
from reward_server.api.context import API_PREFIX, Caller, answer, services_of
from reward_server.api.operation import Operation, operation
from reward_server.api.paging import PagedQuery, Pager
from reward_server.api.query import QueryModel
from reward_server.api.router import Router
from reward_server.auth.scopes import Scope
from reward_server.errors import BodyTooSlow, InvalidRequest
from reward_server.ids import IdPrefix
from reward_server.jobs.files import document
from reward_server.store.records import PageEnd
from trainer_client.wire import FileList, FileResponse

router = Router(prefix=API_PREFIX, tags=["jobs"])
FileId = Annotated[str, Path(description="`file_…`")]


class UploadQuery(QueryModel):
    """Query of an upload."""

    name: str = Field(default="upload.jsonl", max_length=200, description="Name of the file.")


@router.post("/files")
@operation(
    Operation(
        FileResponse,
        scopes=(Scope.SCORE,),
        request_media="application/jsonl",
        response_example=examples.FILE,
    )
)
async def upload_file(request: Request, lab: Caller, query: Annotated[UploadQuery, Query()]) -> Response:
    """Store a JSONL file: one item in each line. The body is the file itself, sent as it is."""
    services = services_of(request)
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise InvalidRequest("Compressed bodies are not accepted.")
    return answer(request, await services.files.upload(lab, query.name, _parts(request)))


@router.get("/files")
@operation(Operation(FileList, scopes=(Scope.SCORE,), errors=(400,), response_example=examples.FILE_LIST))
async def list_files(request: Request, lab: Caller, query: Annotated[PagedQuery, Query()]) -> Response:
    """The lab's files, newest first."""
    services = services_of(request)
    pager = Pager(services.cursors, lab.lab_id, IdPrefix.FILE)
    rows = await services.files.page(lab, query.limit + 1, pager.after(query.cursor))
    shown, following = pager.shown(rows, query.limit, lambda each: PageEnd(each.created_at, each.file_id))
    return answer(request, {"data": [document(row) for row in shown], **following})


@router.get("/files/{file_id}")
@operation(Operation(FileResponse, scopes=(Scope.SCORE,), errors=(404,), response_example=examples.FILE))
async def read_file(request: Request, lab: Caller, file_id: FileId) -> Response:
    """What is known of a file."""
    return answer(request, await services_of(request).files.get(lab, file_id))


@router.delete("/files/{file_id}")
@operation(Operation(FileResponse, scopes=(Scope.SCORE,), errors=(404, 409), response_example=examples.FILE))
async def delete_file(request: Request, lab: Caller, file_id: FileId) -> Response:
    """Forget a file that no open job reads; results of jobs stay."""
    return answer(request, await services_of(request).files.delete(lab, file_id))


async def _parts(request: Request) -> AsyncIterator[bytes]:
    """The body as it comes: every part has the time that a whole small body has."""
    stream = request.stream().__aiter__()
    while True:
        try:
            async with asyncio.timeout(body.DEADLINE_S):
                yield await stream.__anext__()
        except TimeoutError:
            raise BodyTooSlow from None
        except StopAsyncIteration:
            return
