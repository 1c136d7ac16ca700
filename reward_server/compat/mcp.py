"""MCP: episodes and evaluation as tools at /mcp, for clients of the Model Context Protocol (streamable HTTP).

Each message is a request of its own, under the key and the limits of a request: no session is kept, so every replica
answers every message. The official SDK speaks the protocol (`mcp_exchange`); it is loaded with the first message.
"""

from __future__ import annotations

import asyncio
import threading
from functools import cache
from types import ModuleType
from typing import Annotated

import uvicorn
from fastapi import Request, Response

from reward_server.api.access import for_keys
from reward_server.api.body import CONVERSATION
from reward_server.api.context import body_by, services_of
from reward_server.api.router import Router
from reward_server.auth.lab import Lab
from reward_server.auth.scopes import ANY
from reward_server.compat.mcp_tools import Caller
from reward_server.errors import NotFound

PATH = "/mcp"
router = Router(tags=["doors"])
_loading = threading.Lock()


@router.post(PATH, include_in_schema=False)
async def mcp_message(request: Request, lab: Annotated[Lab, for_keys(*ANY)]) -> Response:
    """Answer a message of a client."""
    exchange = await _exchange()
    message = await body_by(exchange.checked, request, CONVERSATION)
    answer: Response = exchange.Answer(message, Caller(request, services_of(request), lab))
    return answer


async def _exchange() -> ModuleType:
    """What speaks the protocol. Loading it takes a second or two, so it is done beside the loop."""
    return _loaded() if _loaded.cache_info().currsize else await asyncio.to_thread(_loaded)


@cache
def _loaded() -> ModuleType:
    with _loading:
        handle_exit = uvicorn.Server.handle_exit
        try:
            from reward_server.compat import mcp_exchange
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
                raise
            raise NotFound("MCP is not installed on this server: pip install 'labs-reward-server[mcp]'") from None
        finally:
            # A package of the SDK puts its own in this place; how this server stops is its own affair.
            uvicorn.Server.handle_exit = handle_exit  # type: ignore[method-assign]
    return mcp_exchange
