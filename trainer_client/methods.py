"""Makes the methods of all clients from calls that are written once.

A call is written as a method that gives what to send, in a class that every client inherits:

    class EpisodeCalls:
        @method
        def get_episode(self, episode_id: str) -> Call[EpisodeResponse]: ...

What it is then depends on who inherits it: `LabsClient.get_episode` gives an `EpisodeResponse`, that of
`AsyncLabsClient` a coroutine of one, and those of `with_raw_response` a `RawResponse[EpisodeResponse]`. The four kinds
of client are the four callers below; type checkers and `help()` see arguments and answers of each.
"""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

from trainer_client.calls import AnswerT, Call
from trainer_client.exchange import RawResponse
from trainer_client.paging import AsyncPages, Page

P = ParamSpec("P")
PartT = TypeVar("PartT")
ItemT = TypeVar("ItemT")
SyncT = TypeVar("SyncT")
AsyncT = TypeVar("AsyncT")

Build = Callable[[], Call[AnswerT]]
"""Makes a call with its arguments, or raises what is wrong with them."""


class SyncCaller(ABC):
    """Gives answers: what the synchronous client is."""

    @abstractmethod
    def _send(self, call: Call[AnswerT]) -> AnswerT:
        """Send a call, retries included."""


class AsyncCaller(ABC):
    """Gives coroutines of answers: what the asynchronous client is."""

    @abstractmethod
    async def _send(self, call: Call[AnswerT]) -> AnswerT:
        """Send a call, retries included."""


class CallGroup(SyncCaller):
    """Some calls under a name of the synchronous client, as `client.agents`."""

    def __init__(self, client: SyncCaller) -> None:
        self._client = client

    def _send(self, call: Call[AnswerT]) -> AnswerT:
        return self._client._send(call)


class AsyncCallGroup(AsyncCaller):
    """Some calls under a name of the asynchronous client, as `client.agents`."""

    def __init__(self, client: AsyncCaller) -> None:
        self._client = client

    async def _send(self, call: Call[AnswerT]) -> AnswerT:
        return await self._client._send(call)


class SyncExchange(Protocol):
    """Sends a call and keeps the HTTP side of its answer."""

    def __call__(self, call: Call[AnswerT]) -> RawResponse[AnswerT]:
        """Send a call, retries included."""


class AsyncExchange(Protocol):
    """Sends a call and keeps the HTTP side of its answer."""

    async def __call__(self, call: Call[AnswerT]) -> RawResponse[AnswerT]:
        """Send a call, retries included."""


class RawCaller:
    """Gives raw responses: what `with_raw_response` of the synchronous client is."""

    def __init__(self, exchange: SyncExchange) -> None:
        self._exchange = exchange


class AsyncRawCaller:
    """Gives coroutines of raw responses: what `with_raw_response` of the asynchronous client is."""

    def __init__(self, exchange: AsyncExchange) -> None:
        self._exchange = exchange


class Method(Generic[P, SyncT, AsyncT, AnswerT]):
    """A call, as the method that each kind of client has."""

    def __init__(
        self,
        build: Callable[Concatenate[Any, P], Call[AnswerT]],
        sync: Callable[[SyncCaller, Build[AnswerT]], SyncT],
        asynchronous: Callable[[AsyncCaller, Build[AnswerT]], AsyncT],
        gives: str | None = None,
    ) -> None:
        self._build = build
        answer = build.__annotations__["return"].removeprefix("Call[").removesuffix("]")
        raw = f"RawResponse[{answer}]"
        self._ways: dict[type, tuple[Callable[..., Any], str]] = {
            SyncCaller: (sync, gives or answer),
            AsyncCaller: (asynchronous, gives or answer),
            RawCaller: (_raw, raw),
            AsyncRawCaller: (_raw_async, raw),
        }
        self._functions: dict[type, Callable[..., Any]] = {}

    @overload
    def __get__(self, caller: None, owner: type) -> Callable[..., Any]: ...
    @overload
    def __get__(self, caller: SyncCaller, owner: type) -> Callable[P, SyncT]: ...
    @overload
    def __get__(self, caller: AsyncCaller, owner: type) -> Callable[P, AsyncT]: ...
    @overload
    def __get__(self, caller: RawCaller, owner: type) -> Callable[P, RawResponse[AnswerT]]: ...
    @overload
    def __get__(
        self, caller: AsyncRawCaller, owner: type
    ) -> Callable[P, Coroutine[Any, Any, RawResponse[AnswerT]]]: ...

    def __get__(self, caller: object, owner: type) -> Callable[..., Any]:
        function = self._functions.get(owner)
        if function is None:
            way = next((way for kind, way in self._ways.items() if issubclass(owner, kind)), None)
            if way is None:
                return self._build
            function = self._functions[owner] = _function(self._build, *way)
        bound: Callable[..., Any] = function.__get__(caller, owner)
        return bound


def method(
    build: Callable[Concatenate[Any, P], Call[AnswerT]],
) -> Method[P, AnswerT, Coroutine[Any, Any, AnswerT], AnswerT]:
    """A method that gives the answer as it is."""
    return Method(build, _answer, _answer_async)


def part_of(
    read: Callable[[AnswerT], PartT],
) -> Callable[[Callable[Concatenate[Any, P], Call[AnswerT]]], Method[P, PartT, Coroutine[Any, Any, PartT], AnswerT]]:
    """A method that gives what `read` takes from the answer; a raw response has all of it."""

    def sync(caller: SyncCaller, build: Build[AnswerT]) -> PartT:
        return read(_answer(caller, build))

    async def asynchronous(caller: AsyncCaller, build: Build[AnswerT]) -> PartT:
        return read(await _answer_async(caller, build))

    return lambda build: Method(build, sync, asynchronous, read.__annotations__["return"])


def pages_of(
    item: type[ItemT],
) -> Callable[[Callable[Concatenate[Any, P], Call[AnswerT]]], Method[P, Page[ItemT], AsyncPages[ItemT], AnswerT]]:
    """A method that gives a list, page after page."""

    def sync(caller: SyncCaller, build: Build[AnswerT]) -> Page[ItemT]:
        return Page[ItemT].of(caller._send, build())

    def asynchronous(caller: AsyncCaller, build: Build[AnswerT]) -> AsyncPages[ItemT]:
        return AsyncPages[ItemT].of(caller._send, build())

    return lambda build: Method(build, sync, asynchronous, f"Page[{item.__name__}]")


def _answer(caller: SyncCaller, build: Build[AnswerT]) -> AnswerT:
    return caller._send(build())


async def _answer_async(caller: AsyncCaller, build: Build[AnswerT]) -> AnswerT:
    return await caller._send(build())


def _raw(caller: RawCaller, build: Build[AnswerT]) -> RawResponse[AnswerT]:
    return caller._exchange(build())


async def _raw_async(caller: AsyncRawCaller, build: Build[AnswerT]) -> RawResponse[AnswerT]:
    return await caller._exchange(build())


def _function(build: Callable[..., Call[Any]], way: Callable[..., Any], gives: str) -> Callable[..., Any]:
    """A plain method that goes one way; it has name, arguments and docstring of the call."""

    def send(self: object, *args: Any, **options: Any) -> Any:
        return way(self, functools.partial(build, self, *args, **options))

    async def send_async(self: object, *args: Any, **options: Any) -> Any:
        return await way(self, functools.partial(build, self, *args, **options))

    function = functools.wraps(build)(send_async if inspect.iscoroutinefunction(way) else send)
    function.__annotations__ = {**build.__annotations__, "return": gives}
    function.__signature__ = inspect.signature(build).replace(return_annotation=gives)  # type: ignore[attr-defined]
    return function
