"""`labs preferences`: a lab's preference pairs as a file to train on, with a manifest beside it."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reward_server.errors import InvalidRequest, LabsError
from reward_server.settings import Settings, load_settings

if TYPE_CHECKING:
    from reward_server.preferences.export import Manifest, Query

app = typer.Typer(help="Export preference pairs of a lab, for DPO and reward models.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


@app.command()
def export(
    lab: Annotated[str, typer.Option(help="Lab that owns the pairs; `development` on a server without keys.")],
    format_name: Annotated[
        str, typer.Option("--format", help="trl (also for `learner train`), openrlhf or openai.")
    ] = "trl",
    out: Annotated[
        Path, typer.Option(help="File to write; the manifest is written next to it.", dir_okay=False)
    ] = Path("preferences.jsonl"),
    min_margin: Annotated[float, typer.Option(min=0.0, max=1.0, help="Minimum difference of the rewards.")] = 0.0,
    collection: Annotated[str | None, typer.Option(help="Only this collection.")] = None,
    source: Annotated[str | None, typer.Option(help="Only this source: label, compare or episodes.")] = None,
    until: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Leave out pairs stored later: `until` of a manifest, or a time in UTC."),
    ] = None,
    provenance: Annotated[bool, typer.Option(help="Whether lines include their provenance.")] = True,
    data: Annotated[Path | None, typer.Option(help="The server's data folder; LABS_DATA.", file_okay=False)] = None,
) -> None:
    """Write a lab's preference pairs: from human labels, comparisons and groups of episodes."""
    from reward_server.preferences.export import Query
    from reward_server.preferences.formats import Format
    from reward_server.preferences.pairs import Source

    query = Query(
        lab_id=lab,
        format=Format(_one_of("--format", format_name, list(Format))),
        until=datetime.now(UTC) if until is None else _moment(until),
        min_margin=min_margin,
        collections=None if collection is None else (collection,),
        source=None if source is None else Source(_one_of("--source", source, list(Source))),
        provenance=provenance,
    )
    settings = load_settings({"data": data})
    manifest = asyncio.run(_write(settings, query, out)).to_json()
    left = ", ".join(f"{count} × {reason}" for reason, count in manifest["left_out"].items())
    if not manifest["pairs"]:
        # Usually the server has another data folder. The URL of a database is not shown: it may hold a password.
        where = "" if settings.database_url else f" (data {settings.data})"
        raise LabsError(f"the lab {lab} has no pairs to export{where}" + (f"; left out: {left}" if left else ""))
    typer.echo(f"{manifest['pairs']} pairs in {out}, manifest in {manifest_of(out)}")
    for name, count in manifest["sources"].items():
        typer.echo(f"  {count} from {name}")
    if left:
        typer.echo(f"left out: {left}")


def manifest_of(out: Path) -> Path:
    """The path of the manifest of a file."""
    return out.with_name(f"{out.stem}.manifest.json")


def _one_of(option: str, given: str, known: list[str]) -> str:
    if given not in known:
        raise InvalidRequest(f"{option} must be one of {', '.join(known)}")
    return given


def _moment(given: str) -> datetime:
    """An ISO 8601 time as manifests write it; without an offset it is UTC."""
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        raise InvalidRequest(f"--until must be a time such as 2026-01-31T12:00:00Z, not {given}") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


async def _write(settings: Settings, query: Query, out: Path) -> Manifest:
    from reward_server.preferences.export import Export
    from reward_server.store.migrate import migrate
    from reward_server.store.store import Store

    await migrate(settings.database)
    store = await Store.open(settings.database)
    unfinished = out.with_name(f"{out.name}.part")
    try:
        found = Export(store, query)
        out.parent.mkdir(parents=True, exist_ok=True)
        with unfinished.open("wb") as stream:
            async for part in found.parts():
                stream.write(part)
        if found.manifest.to_json()["pairs"]:
            unfinished.replace(out)
            text = json.dumps(found.manifest.to_json(), indent=2) + "\n"
            manifest_of(out).write_text(text, encoding="utf-8")
    finally:
        unfinished.unlink(missing_ok=True)
        await store.close()
    return found.manifest
