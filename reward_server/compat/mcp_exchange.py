"""One message of the Model Context Protocol and its answer: the official SDK speaks, this server works.

What a tool does is done in the task of the request, as every other call is: it ends with the client's connection and
with the server as they do. The SDK's task hands it over and waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from fastapi import Response
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
    jsonrpc_message_adapter,
)
from mcp_types import Tool as ShownTool
from pydantic import ValidationError
from pydantic_core import to_json
from starlette.types import Message, Receive, Scope, Send

from reward_server import __version__
from reward_server.api.body import CONVERSATION, read_json
from reward_server.compat.mcp_tools import TOOLS, Caller, Outcome, Tool, called
from reward_server.errors import InvalidRequest

_DESK = "mcp_desk"
"""In the state of a request: where its tool call is handed over."""


def checked(body: bytes) -> bytes:
    """A body that holds one message, as it came; the SDK's own words for another would repeat it."""
    try:
        jsonrpc_message_adapter.validate_python(read_json(body), by_name=False)
    except ValidationError:
        raise InvalidRequest("The body must be one JSON-RPC 2.0 message.") from None
    return body


class Desk:
    """Where the SDK's task asks for the tool call of a message, and waits for what came of it."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.asked: asyncio.Future[tuple[Tool, Mapping[str, Any]]] = asyncio.Future()
        self.answered: asyncio.Future[Outcome] = asyncio.Future()


class Answer(Response):
    """The answer to a message."""

    def __init__(self, message: bytes, caller: Caller) -> None:
        super().__init__()
        self._message = message
        self._caller = caller

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Have the message answered; raises what is no answer of a tool, as every call does."""
        desk = Desk(self._caller)
        scope["state"][_DESK] = desk
        speaking = asyncio.ensure_future(_speak(scope, _replayed(self._message), send))
        try:
            either: set[asyncio.Future[Any]] = {speaking, desk.asked}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if desk.asked.done():
                desk.answered.set_result(await called(desk.caller, *desk.asked.result()))
            await speaking
        finally:
            speaking.cancel()
            await asyncio.gather(speaking, return_exceptions=True)


async def _speak(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer in the protocol's words. The SDK's manager keeps nothing from one message to the next, so each has one."""
    most = int(CONVERSATION.megabytes * 1_000_000)
    manager = StreamableHTTPSessionManager(_SERVER, json_response=True, stateless=True, max_request_body_size=most)
    async with manager.run():
        await manager.handle_request(scope, receive, send)


def _replayed(body: bytes) -> Receive:
    """What gives the body that was read, and then nothing for as long as somebody waits."""
    parts: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return parts.pop() if parts else await asyncio.Future()

    return receive


async def _list_tools(context: ServerRequestContext[Any, Any], _: PaginatedRequestParams | None) -> ListToolsResult:
    """The tools that the caller's key may call."""
    lab = _desk_of(context).caller.lab
    return ListToolsResult(tools=[_shown(tool) for tool in TOOLS.values() if tool.is_for(lab)])


async def _call_tool(context: ServerRequestContext[Any, Any], params: CallToolRequestParams) -> CallToolResult:
    tool = TOOLS.get(params.name)
    if tool is None:
        raise MCPError(INVALID_PARAMS, f"There is no such tool; there are: {', '.join(TOOLS)}.")
    desk = _desk_of(context)
    desk.asked.set_result((tool, params.arguments or {}))
    outcome = await desk.answered
    text = TextContent(type="text", text=to_json(outcome.body).decode())
    return CallToolResult(content=[text], structured_content=outcome.body, is_error=outcome.failed)


def _desk_of(context: ServerRequestContext[Any, Any]) -> Desk:
    """The SDK makes a request of the same scope."""
    request: Any = context.request
    desk: Desk = request.scope["state"][_DESK]
    return desk


def _shown(tool: Tool) -> ShownTool:
    return ShownTool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.input_schema,
        annotations=ToolAnnotations(read_only_hint=tool.reads_only, destructive_hint=False, open_world_hint=False),
    )


def _server() -> Server[Any]:
    server: Server[Any] = Server(
        "labs",
        version=__version__,
        instructions="Talk to a persona in an episode, and get the reward of the conversation; or have one scored.",
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
        get_tool_input_schema=_no_header_names_an_argument,
    )
    # The traces of this server tell what may be told; the SDK's would tell the text of errors.
    server.middleware.clear()
    return server


def _no_header_names_an_argument(_: str) -> None:
    """So the SDK need not list the tools to look."""


_SERVER = _server()
