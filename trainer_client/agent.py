"""Agents as functions: any "messages in, text out" callable, and how it is called.

The agent sees the chat-template convention: itself as `assistant`, the persona as `user`. A plain
function runs in a thread of a pool as large as the concurrency, a coroutine function is awaited, a
`BatchAgent` gets all conversations that wait at that moment in one call, in a thread of its own.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, NotRequired, Protocol, TypedDict, TypeVar

from pydantic import ValidationError

from trainer_client.wire import Message, ToolCall

T = TypeVar("T")


class ChatToolCall(TypedDict):
    """A tool call in a message."""

    name: str
    type: NotRequired[str]
    input: dict[str, Any]


class ChatMessage(TypedDict):
    """A message as chat templates take it; a plain `dict` when the program runs."""

    role: str
    content: str
    tool_calls: NotRequired[list[ChatToolCall]]


@dataclass(frozen=True)
class AgentReply:
    """An agent's turn: its text and the tools it calls."""

    content: str
    tool_calls: tuple[ToolCall, ...] = ()

    def message(self) -> ChatMessage:
        """As it is sent to the server, and kept in the history."""
        message: ChatMessage = {"role": "assistant", "content": self.content}
        if self.tool_calls:
            message["tool_calls"] = [_tool_call(call) for call in self.tool_calls]
        return message


def _tool_call(call: ToolCall) -> ChatToolCall:
    plain: ChatToolCall = {"name": call.name, "input": call.input}
    return plain if call.type is None else {"name": call.name, "type": call.type, "input": call.input}


ReplyLike = str | AgentReply | Message | Mapping[str, Any]
SyncAgent = Callable[[list[ChatMessage]], ReplyLike]
AsyncAgent = Callable[[list[ChatMessage]], Awaitable[ReplyLike]]


@dataclass(frozen=True)
class BatchAgent:
    """Marks a function that answers many conversations in one call."""

    answer: Callable[[list[list[ChatMessage]]], Sequence[ReplyLike]]
    max_batch: int = 256


Agent = SyncAgent | AsyncAgent | BatchAgent


class AgentRunner(Protocol):
    """Asks an agent for one reply."""

    async def __call__(self, messages: list[ChatMessage]) -> AgentReply:
        """The reply to this conversation."""
        ...

    async def aclose(self) -> None:
        """Let go of what runs in the background."""
        ...


def runner_for(agent: Agent, concurrency: int) -> AgentRunner:
    """The runner that fits the kind of agent, for so many conversations at once."""
    if isinstance(agent, BatchAgent):
        return _BatchRunner(agent)
    if not callable(agent):
        raise TypeError("an agent must be callable: messages in, text out")
    return _SingleRunner(agent, concurrency)


def as_reply(value: ReplyLike) -> AgentReply:
    """Read what an agent returned; a TypeError says what it should have been."""
    if isinstance(value, AgentReply):
        return _checked(value)
    if isinstance(value, str):
        return AgentReply(value)
    if isinstance(value, Mapping):
        try:
            value = Message.model_validate({"role": "assistant", **value})
        except ValidationError as error:
            raise TypeError(f"an agent's message needs `content`, and `tool_calls` of the wire type: {error}") from None
    if isinstance(value, Message):
        return AgentReply(value.content, tuple(value.tool_calls or ()))
    raise TypeError(f"an agent must return text or a message, not {type(value).__name__}")


def _checked(reply: AgentReply) -> AgentReply:
    """The same with the calls as `ToolCall`: nothing has looked at what the agent's code put into it."""
    if not isinstance(reply.content, str):
        raise TypeError(f"the content of an AgentReply must be text, not {type(reply.content).__name__}")
    try:
        return AgentReply(reply.content, tuple(ToolCall.model_validate(call) for call in reply.tool_calls))
    except (TypeError, ValidationError) as error:
        raise TypeError(f"the tool_calls of an AgentReply must be a tuple of ToolCall: {error}") from None


class _SingleRunner:
    def __init__(self, agent: SyncAgent | AsyncAgent, concurrency: int) -> None:
        self._agent = agent
        # A pool of its own: the loop's default one has a handful of threads on a small machine, whatever was asked for.
        self._threads = _Threads(concurrency)
        call = getattr(agent, "__call__", None)  # noqa: B004 - an object with an async __call__ is one too
        self._is_async = inspect.iscoroutinefunction(agent) or inspect.iscoroutinefunction(call)

    async def __call__(self, messages: list[ChatMessage]) -> AgentReply:
        value = self._agent(messages) if self._is_async else await self._threads.run(self._agent, messages)
        # A plain function may still return an awaitable (a partial, a lambda around a coroutine function).
        return as_reply(await value if inspect.isawaitable(value) else value)

    async def aclose(self) -> None:
        self._threads.close()


class _Threads:
    """Threads for the agent's own code, made as they are needed."""

    def __init__(self, count: int) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="labs-agent")

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        call = partial(contextvars.copy_context().run, function, *args)
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    def close(self) -> None:
        # An agent that is still thinking is not waited for: nobody wants its answer any more.
        self._pool.shutdown(wait=False, cancel_futures=True)


class _BatchRunner:
    """Collects what waits while the agent is busy, and hands it over in one call."""

    def __init__(self, agent: BatchAgent) -> None:
        self._agent = agent
        self._threads = _Threads(1)
        self._waiting: list[tuple[list[ChatMessage], asyncio.Future[AgentReply]]] = []
        self._worker: asyncio.Task[None] | None = None

    async def __call__(self, messages: list[ChatMessage]) -> AgentReply:
        future: asyncio.Future[AgentReply] = asyncio.get_running_loop().create_future()
        self._waiting.append((messages, future))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        return await future

    async def aclose(self) -> None:
        if self._worker is not None and not self._worker.done():
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
        self._threads.close()

    async def _work(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[: self._agent.max_batch], self._waiting[self._agent.max_batch :]
            try:
                replies = await self._threads.run(self._agent.answer, [messages for messages, _ in batch])
                if len(replies) != len(batch):
                    raise TypeError(f"the agent answered {len(replies)} of {len(batch)} conversations")  # noqa: TRY301
                answers = [as_reply(reply) for reply in replies]
            except Exception as error:  # noqa: BLE001 - the agent is the trainer's code: its failure belongs to its callers
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
                continue
            for (_, future), answer in zip(batch, answers, strict=True):
                if not future.done():
                    future.set_result(answer)
