"""`labs doctor`: look at everything a server needs, and say what to do about what is missing.

Each check looks and changes nothing; the database is only opened if it exists. The provider of LLM judges is asked
only with `--ask`: a question costs money.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from reward_server import __version__
from reward_server.errors import LabsError
from reward_server.settings import Settings, load_settings

LOW_DISK_BYTES = 500_000_000


@dataclass(frozen=True)
class Finding:
    """The outcome of one check; `mend` is set when something is wrong."""

    name: str
    detail: str
    mend: str | None = None


def doctor(
    data: Annotated[Path | None, typer.Option(help="The server's data folder; LABS_DATA.", file_okay=False)] = None,
    ask: Annotated[bool, typer.Option("--ask", help="Ask the provider of LLM judges one tiny question.")] = False,
) -> None:
    """Check Python, the encoder, the scenarios, the data folder, the database, the port and the LLM provider."""
    settings = load_settings({"data": data})
    failed = False
    for name, check in (CHECKS | {"llm": _asked_llm} if ask else CHECKS).items():
        try:
            finding = check(settings)
        except LabsError as error:
            finding = Finding(name, "not usable", error.message)
        failed = failed or finding.mend is not None
        typer.echo(f"{'✗' if finding.mend else '✓'} {name:<10} {finding.detail}")
        if finding.mend:
            typer.echo(f"    {finding.mend}")
    if failed:
        raise typer.Exit(1)


def _python(settings: Settings) -> Finding:
    return Finding("python", f"{sys.version.split()[0]}, labs {__version__}")


def _encoder(settings: Settings) -> Finding:
    from reward_server.reward_models.encoder import load_encoder

    return Finding("encoder", load_encoder(settings.encoder).version)


def _scenarios(settings: Settings) -> Finding:
    from reward_server.engine import load_scenarios

    library = load_scenarios(settings.scenarios)
    collections = library.catalog.collections
    count = sum(len(collection.scenarios) for collection in collections.values())
    return Finding("scenarios", f"{count} in {len(collections)} collections")


def _data(settings: Settings) -> Finding:
    existing = next(folder for folder in (settings.data, *settings.data.absolute().parents) if folder.exists())
    if not os.access(existing, os.W_OK):
        return Finding("data", str(settings.data), f"{existing} is not writable; choose another folder with --data")
    free = shutil.disk_usage(existing).free
    mend = "make room: writes fail when the disk is full" if free < LOW_DISK_BYTES else None
    return Finding("data", f"{settings.data}, {free / 1e9:.1f} GB free", mend)


def _database(settings: Settings) -> Finding:
    from reward_server.store.store import Store

    if settings.database_url is None and not (settings.data / "labs.sqlite").exists():
        return Finding("database", "none yet; the first start makes it")

    async def look() -> int:
        store = await Store.open(settings.database)
        try:
            async with store.reading() as unit:
                return await unit.keys.count()
        finally:
            await store.close()

    return Finding("database", f"schema is current, {asyncio.run(look())} API keys")


def _port(settings: Settings) -> Finding:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        taken = settings.is_loopback and settings.port and probe.connect_ex((settings.host, settings.port)) == 0
    if not taken:
        return Finding("port", f"{settings.port} is free")
    if _is_labs(settings):
        return Finding("port", f"Labs is running on {settings.port}")
    return Finding("port", f"{settings.port} is in use by another program", "choose another with --port")


def _is_labs(settings: Settings) -> bool:
    import httpx2

    try:
        answer = httpx2.get(f"http://{settings.host}:{settings.port}/healthz", timeout=2.0)
    except httpx2.HTTPError:
        return False
    return answer.status_code == httpx2.codes.OK and "request_id" in answer.text


def _llm(settings: Settings) -> Finding:
    """Who is asked, and that everything for it is there; the key shows nowhere."""
    from reward_server.llm.build import language_model

    model = language_model(settings)
    if model is None:
        return Finding("llm", "none; criteria for an LLM judge abstain")
    about = model.describe()
    return Finding("llm", f"{model.name} at {about['endpoint']}; not asked (--ask asks)")


def _asked_llm(settings: Settings) -> Finding:
    from reward_server.llm.base import LlmFailed
    from reward_server.llm.build import ping

    named = f"{settings.llm_provider}/{settings.llm_model}"
    try:
        answered = asyncio.run(ping(settings))
    except LlmFailed as failed:
        return Finding("llm", f"{named} gave no answer: {failed.kind}", MENDS.get(failed.kind, "try again later"))
    return Finding("llm", "none to ask" if answered is None else f"{named} answered as {answered}")


MENDS = {
    "unauthorised": "check LABS_LLM_API_KEY, LABS_LLM_MODEL, LABS_LLM_BASE_URL and the account's balance",
    "timeout": "check LABS_LLM_BASE_URL, or give more time with LABS_LLM_DEADLINE_S",
    "reset": "nothing answers at LABS_LLM_BASE_URL",
    "malformed": "the model does not hold to JSON schemas; choose another",
    "rejected": "the model does not take JSON schemas; choose another",
}
CHECKS: dict[str, Callable[[Settings], Finding]] = {
    "python": _python,
    "encoder": _encoder,
    "scenarios": _scenarios,
    "data": _data,
    "database": _database,
    "port": _port,
    "llm": _llm,
}
