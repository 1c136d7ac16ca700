"""Kinds of jobs: how their items are checked and done.

A kind does a slice of items at a time and records what became of them in the very transaction that makes their effect
durable, so that an item has its effect once however often its workers are killed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel

from reward_server.auth.lab import Lab
from reward_server.errors import (
    FieldProblem,
    InvalidRequest,
    LabsError,
    ProviderFailed,
    RateLimited,
    Unavailable,
    in_a_line,
)
from reward_server.limits.usage import ReadingCounter
from reward_server.store.job_records import ItemOutcome, ItemState
from reward_server.store.records import JsonObject
from reward_server.store.store import Store
from reward_server.store.unit_of_work import UnitOfWork

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
MAX_ID_CHARACTERS = 256
Record = Callable[[UnitOfWork, Sequence[ItemOutcome]], Awaitable[None]]
"""Records outcomes; to be called in the transaction of their effect. Raises `LeaseLost`."""


@dataclass(frozen=True)
class LineReader:
    """Turns lines into requests, within the limits of requests.

    Its parts are handed in, because requests are checked where HTTP is known. Other tasks have their turn before each
    line: a slice of them is more than the event loop may do in one go.
    """

    read_json: Callable[[bytes], Any]
    validate: Callable[[type[BaseModel], object], Any]
    within_limits: Callable[[Callable[[bytes], Any], bytes], Awaitable[Any]]
    """What a function makes of a line, off the event loop if it is large; `InvalidRequest` if it holds too much."""

    async def read(self, model: type[M], line: bytes, defaults: Mapping[str, Any]) -> M:
        """The request of a line; what it leaves out is the job's. `InvalidRequest` says what is wrong."""

        def request(line: bytes) -> M:
            content = self.read_json(line)
            read: M = self.validate(model, {**defaults, **content} if isinstance(content, dict) else content)
            return read

        return await self._made(request, line)

    async def named(self, item: JobItem) -> tuple[str, dict[str, Any]]:
        """The id of an item whose request has none, and the rest of its line."""
        return await self._made(lambda line: self._split(item.index, line), item.line)

    async def read_named(self, model: type[M], item: JobItem, defaults: Mapping[str, Any]) -> tuple[str, M]:
        """The id of an item whose request has none, and the request of the rest, as `read` reads it."""

        def request(line: bytes) -> tuple[str, M]:
            item_id, content = self._split(item.index, line)
            return item_id, self.validate(model, {**defaults, **content})

        return await self._made(request, item.line)

    async def _made(self, work: Callable[[bytes], T], line: bytes) -> T:
        await asyncio.sleep(0)
        made: T = await self.within_limits(work, line)
        return made

    def _split(self, index: int, line: bytes) -> tuple[str, dict[str, Any]]:
        content = self.read_json(line)
        if not isinstance(content, dict):
            raise InvalidRequest("An item is a JSON object.")
        item_id = content.pop("id", str(index))
        if not isinstance(item_id, str) or not 1 <= len(item_id) <= MAX_ID_CHARACTERS:
            raise InvalidRequest(
                errors=[FieldProblem(("id",), f"Must be text of 1 to {MAX_ID_CHARACTERS} characters.")]
            )
        return item_id, content


@dataclass(frozen=True, slots=True)
class JobItem:
    """One line of a job's input."""

    index: int
    attempt: int
    line: bytes = field(repr=False)


@dataclass(frozen=True)
class Work:
    """The things that a kind is handed beside the items."""

    lab: Lab
    params: JsonObject = field(repr=False)
    """The job's, beside its input."""
    job_id: str
    file_id: str
    note: Callable[[JsonObject], Awaitable[None]]
    """Tell how far an item is: `stage` and `progress` from 0 to 1."""
    read: ReadingCounter
    """Tell of characters that are read besides the items' lines."""


@dataclass(frozen=True)
class WholeFile:
    """Of a kind whose item is the whole file."""

    most_lines: int
    deadline_s: float
    """Of an attempt."""


class JobKind(Protocol):
    """A type of jobs."""

    @property
    def slice_size(self) -> int:
        """Items that are done together."""

    @property
    def whole(self) -> WholeFile | None:
        """None: each line is an item."""

    async def check(self, lab: Lab, params: JsonObject) -> None:
        """Refuse, before any work, what cannot be done; `LabsError` says why."""

    async def run(self, work: Work, items: Sequence[JobItem], record: Record) -> None:
        """Do these items and record all of them."""


@runtime_checkable
class CollectingKind(Protocol):
    """A kind that finds its items itself, where none are given."""

    def check_input(self, params: JsonObject) -> None:
        """Refuse a job whose items are given and asked for as well; `InvalidRequest`."""

    def collect(self, lab: Lab, params: JsonObject) -> AsyncIterator[bytes]:
        """The items, as lines; `InvalidRequest` where nothing says which."""


def in_passing(error: type[LabsError]) -> bool:
    """True if a failure says nothing of the item: the same item may work later."""
    return issubclass(error, ProviderFailed | Unavailable | RateLimited) or error is LabsError


def _tree(error: type[LabsError]) -> Iterator[type[LabsError]]:
    yield error
    for child in error.__subclasses__():
        yield from _tree(child)


def passing_codes() -> frozenset[str]:
    """Codes of failures after which an item is tried again."""
    return frozenset(error.code for error in _tree(LabsError) if in_passing(error))


def succeeded(index: int, result: JsonObject) -> ItemOutcome:
    """An item that is done."""
    return ItemOutcome(index=index, state=ItemState.DONE, result={"index": index, "status": "success", **result})


def failed(index: int, code: str, message: str, item_id: str | None = None) -> ItemOutcome:
    """An item that got an error. Whether it is tried again is decided by whoever records it."""
    known = {} if item_id is None else {"id": item_id}
    result = {"index": index, **known, "status": "error", "code": code, "message": message}
    return ItemOutcome(index=index, state=ItemState.FAILED, result=result)


async def record_alone(store: Store, record: Record, outcomes: Sequence[ItemOutcome]) -> None:
    """Record outcomes that have no effect besides."""
    async with store.transaction() as unit:
        await record(unit, outcomes)


def failed_by(index: int, error: LabsError, item_id: str | None = None) -> ItemOutcome:
    """An item that was refused."""
    return failed(index, error.code, in_a_line(error), item_id)
