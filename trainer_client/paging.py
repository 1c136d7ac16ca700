"""Lists that come in pages: one page to look at, or all items by going on over it.

    for episode in client.list_episodes(status="complete"): ...        # all of them, page after page
    async for episode in async_client.list_episodes(): ...
    page = await async_client.list_episodes(limit=20)                  # the first 20: page.data, page.next_cursor

The next page is asked for when the one before is used up, never earlier.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, Self, TypeVar

from trainer_client.calls import Call

ItemT = TypeVar("ItemT")
ItemT_co = TypeVar("ItemT_co", covariant=True)


class Listing(Protocol[ItemT_co]):
    """An answer that is one page of a list."""

    @property
    def data(self) -> Sequence[ItemT_co]:
        """The items."""
        ...

    @property
    def next_cursor(self) -> str | None:
        """The cursor of the next page; None after the last one."""
        ...

    @property
    def request_id(self) -> str:
        """The server's name for the request."""
        ...


@dataclass(frozen=True)
class _Page(Generic[ItemT]):
    """One page."""

    data: Sequence[ItemT]
    next_cursor: str | None
    request_id: str
    _call: Call[Any] = field(repr=False)

    def has_next_page(self) -> bool:
        """True if there is more."""
        return self.next_cursor is not None

    def _next_call(self) -> Call[Any]:
        if self.next_cursor is None:
            raise LookupError("this is the last page; ask has_next_page() first")
        return replace(self._call, query={**self._call.query, "cursor": self.next_cursor})


@dataclass(frozen=True)
class Page(_Page[ItemT]):
    """One page; to go over it is to go over all that follow, too."""

    _send: Callable[[Call[Any]], Listing[ItemT]] = field(repr=False)

    @classmethod
    def of(cls, send: Callable[[Call[Any]], Listing[ItemT]], call: Call[Any]) -> Self:
        """The page that a call brings."""
        answer = send(call)
        return cls(answer.data, answer.next_cursor, answer.request_id, call, send)

    def next_page(self) -> Page[ItemT]:
        """The page after this one; LookupError after the last."""
        return Page.of(self._send, self._next_call())

    def __iter__(self) -> Iterator[ItemT]:
        page = self
        while True:
            yield from page.data
            if not page.has_next_page():
                return
            page = page.next_page()


@dataclass(frozen=True)
class AsyncPage(_Page[ItemT]):
    """One page; to go over it is to go over all that follow, too."""

    _send: Callable[[Call[Any]], Awaitable[Listing[ItemT]]] = field(repr=False)

    async def next_page(self) -> AsyncPage[ItemT]:
        """The page after this one; LookupError after the last."""
        return await AsyncPages(self._send, self._next_call())

    async def __aiter__(self) -> AsyncIterator[ItemT]:
        page = self
        while True:
            for item in page.data:
                yield item
            if not page.has_next_page():
                return
            page = await page.next_page()


class AsyncPages(Generic[ItemT]):
    """A list not asked for yet: awaited it is its first page, gone over it is all items."""

    def __init__(self, send: Callable[[Call[Any]], Awaitable[Listing[ItemT]]], call: Call[Any]) -> None:
        self._send = send
        self._call = call

    @classmethod
    def of(cls, send: Callable[[Call[Any]], Awaitable[Listing[ItemT]]], call: Call[Any]) -> Self:
        """The list that begins with what a call brings."""
        return cls(send, call)

    def __await__(self) -> Generator[Any, None, AsyncPage[ItemT]]:
        return self._first().__await__()

    async def __aiter__(self) -> AsyncIterator[ItemT]:
        async for item in await self._first():
            yield item

    async def _first(self) -> AsyncPage[ItemT]:
        answer = await self._send(self._call)
        return AsyncPage(answer.data, answer.next_cursor, answer.request_id, self._call, self._send)
