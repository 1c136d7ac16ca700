"""`labs serve`: start the server and say how to talk to it.

The port is bound and the data folder looked at before anything slow happens, so that one in use is one line at once.
The banner is printed only when the server answers, so the `curl` line in it works when it is pasted. On SIGTERM, Ctrl-C
or when its terminal is closed, requests in work are answered, what outlived its request is finished, the store is
closed, and the process ends by itself.
"""

from __future__ import annotations

import asyncio
import gc
import math
import os
import signal
import socket
import sys
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reward_server.cli.running import labs_at, url_of
from reward_server.errors import ConfigurationError
from reward_server.removed_settings import gone
from reward_server.settings import Settings, load_settings
from scenarios.spelling import counted

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI

    from reward_server.api.context import Services
    from reward_server.server.standby import ListeningAddress
    from scenarios.library import Catalog

BACKLOG = 2048
EXAMPLE = ("customer-support", "leaking-blender")
FIRST_START = (
    "This is the first start: the scenarios are encoded in the background, once. Until then, the first turn of each"
    " takes some seconds."
)


def serve(
    host: Annotated[str | None, typer.Option(help="Address to bind; LABS_HOST. \\[default: 127.0.0.1]")] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port to bind, 0 for any free one; LABS_PORT. \\[default: 8321]"),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder for the database and the key pepper; LABS_DATA.", file_okay=False)
    ] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error; LABS_LOG_LEVEL.")] = None,
    standby: Annotated[
        bool,
        typer.Option("--standby", help="Load everything, then wait until the server on this data folder has ended."),
    ] = False,
) -> None:
    """Start the reward server (SQLite, no key needed on loopback) and print a curl line to try it."""
    settings = load_settings({"host": host, "port": port, "data": data, "log_level": log_level})
    for line in gone(os.environ):
        typer.echo(f"labs: {line}", err=True)
    # What a start makes stays: to look for garbage in it takes a seventh of the time. `settle_heap` ends this.
    gc.disable()
    from uvicorn.loops.auto import auto_loop_factory

    # uvloop where there is one: it takes results over from threads at less cost than asyncio's own loop.
    with asyncio.Runner(loop_factory=auto_loop_factory()) as runner:
        if runner.run(_run(settings, standby=standby)) == signal.SIGINT:
            raise KeyboardInterrupt


async def _run(settings: Settings, *, standby: bool) -> int | None:
    """Bind, start everything, and serve until a signal; which one it was."""
    if not standby:
        from reward_server.store.occupancy import require_free

        # Before anything is loaded, which takes seconds.
        require_free(settings.database)
    from reward_server.server.app import Ports, create_app
    from reward_server.server.graceful_server import GracefulServer
    from reward_server.server.signals import Signals
    from reward_server.server.standby import ListeningAddress, StandbyCancelled
    from reward_server.server.stopping import Stopping

    is_first = not (standby or settings.anchors.exists())
    place = ListeningAddress(settings, partial(bind, settings.host, settings.port))
    async with AsyncExitStack() as stack:
        if not standby:
            _take(place, stack, settings)
            # The port that was free, if any would do: learners that the server starts have to know it.
            settings = settings.model_copy(update={"port": place.listener.getsockname()[1]})
        signals = stack.enter_context(Signals())
        app = create_app(settings, ports=Ports(turn=place.turn if standby else None))
        # The lifespan is entered here and not by uvicorn, so that what stops it arrives as an error of ours.
        try:
            await stack.enter_async_context(app.router.lifespan_context(app))
        except StandbyCancelled as relieved:
            return relieved.number
        server = GracefulServer(_uvicorn_config(app, settings))
        stopping = Stopping(app, settings.drain_s)

        def end(number: int, frame: FrameType | None) -> None:
            stopping.begin(128 + number if number == signal.SIGINT else 0)
            server.handle_exit(number, frame)

        signals.hear(end)
        # Not `serve`: that one raises the signal again before anything is closed.
        serving = asyncio.create_task(server._serve(sockets=[place.listener]))
        while not server.started and not serving.done():  # noqa: ASYNC110 (uvicorn has no event for this)
            await asyncio.sleep(0.02)
        if server.started:
            typer.echo(banner(settings, place.listener.getsockname()[1], app.state.services, is_first=is_first))
            sys.stdout.flush()  # whoever reads a pipe waits for these lines
        await serving
    return signals.first


def _uvicorn_config(app: FastAPI, settings: Settings) -> uvicorn.Config:
    """How the HTTP server is set up: connections, sockets and the time to stop are bounded."""
    import uvicorn

    from reward_server.server.connections import Connections
    from reward_server.server.http_protocol import BoundedHttpProtocol
    from reward_server.server.socket_protocol import MAX_MESSAGE_BYTES, PING_S, PONG_S

    protocol: Any = partial(BoundedHttpProtocol, connections=Connections.beside(settings.max_concurrency))
    return uvicorn.Config(
        app,
        http=protocol,
        ws="websockets-sansio",
        ws_max_size=MAX_MESSAGE_BYTES,
        ws_per_message_deflate=False,
        ws_ping_interval=PING_S,
        ws_ping_timeout=PONG_S,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=math.ceil(2 * settings.drain_s),
    )


def _take(place: ListeningAddress, stack: AsyncExitStack, settings: Settings) -> None:
    """Bind the address; if a Labs server has it, the error says so."""
    try:
        place.bind(stack)
    except ConfigurationError:
        if url := labs_at(settings.host, settings.port):
            raise ConfigurationError(
                f"a Labs server runs at {url} already: use that one, or start another with --port and --data"
            ) from None
        raise


def bind(host: str, port: int) -> socket.socket:
    """A bound socket, or a one-line error that says what to do."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except socket.gaierror:
        raise ConfigurationError(f"{host!r} is not an address of this machine; try --host 127.0.0.1") from None
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        # A second server may bind beside one that listens unless this one listens from the start.
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        reason = (error.strerror or str(error)).lower()
        raise ConfigurationError(f"cannot listen on {host}:{port}: {reason}; choose another with --port") from None
    listener.setblocking(False)
    return listener


def banner(settings: Settings, port: int, services: Services, *, is_first: bool = False) -> str:
    """The banner that a new user needs: the URL, a line to paste that works, and whether a key is needed.

    At the first start on a data folder, also why first turns take long; a standby has encoded everything before.
    """
    url = url_of(settings.host, port)
    open_access, console = services.gatekeeper.open_access, settings.console == "on"
    development = "Development mode: no API key exists, so calls need none."
    if settings.metrics_access == "operator":
        development += " This includes /metrics: LABS_METRICS_ACCESS=operator takes effect with the first key."
    auth = "" if open_access else " -H 'Authorization: Bearer lab_YOUR_KEY'"
    collection, scenario = example(services.catalog)
    body = f'{{"collection_slug": "{collection}", "scenario_slug": "{scenario}"}}'
    lines = [
        *([f"Open {url}/console in a browser: talk to a persona and see the reward move."] if console else []),
        f"Labs is ready at {url}   (API {url}/api/v1, docs {url}/docs, data {settings.data})",
        *_own_scenarios(settings, services.catalog),
        development if open_access else "Calls need an API key.",
        *([FIRST_START] if is_first else []),
        "Try it:",
        f"  curl -s {url}/api/v1/episodes{auth} -H 'Content-Type: application/json' -d '{body}'",
    ]
    return "\n".join(lines)


def _own_scenarios(settings: Settings, catalog: Catalog) -> list[str]:
    """The lines on scenarios that are not the packaged ones: who sets a folder may expect both."""
    if settings.scenarios is None:
        return []
    count = counted(len(catalog.collections), "collection")
    return [f"Scenarios: {count} in {settings.scenarios} (LABS_SCENARIOS), and none of the packaged ones."]


def example(catalog: Catalog) -> tuple[str, str]:
    """The scenario of the README if it is served, else the first there is."""
    if catalog.find(*EXAMPLE) is not None:
        return EXAMPLE
    collection = next(iter(catalog.collections))
    return collection, next(iter(catalog.collections[collection].scenarios))
