"""`labs scenarios push`, `pull` and `diff`: a lab's own scenarios on a server, as any client brings them."""

from __future__ import annotations

import difflib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reward_server.cli.jobs import Url, connected
from reward_server.errors import InvalidRequest, LabsError

if TYPE_CHECKING:
    from trainer_client.wire import PulledCollection

Folder = Annotated[
    Path, typer.Argument(help="Folder of the collection, with its collection.yaml.", exists=True, file_okay=False)
]
Version = Annotated[int | None, typer.Option(min=1, help="A version. \\[default: the newest]")]
LOOK_S = 1.0


def push(
    folder: Folder,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the check.")] = True,
    url: Url = None,
) -> None:
    """Bring a collection of your own to a server; it is in use once its check has passed. Scope author."""
    files = _files(folder)
    with connected(url) as client:
        made = client.push_scenarios(folder.resolve().name, files)
        typer.echo(f"{made.collection} version {made.version}: {made.status}")
        if not wait:
            return
        found = client.pull_scenarios(made.collection, version=made.version)
        while found.status == "checking":
            time.sleep(LOOK_S)
            found = client.pull_scenarios(made.collection, version=made.version)
    for finding in found.findings:
        typer.echo(f"  {finding}")
    typer.echo(f"{found.collection} version {found.version}: {found.status}")
    if found.status == "failed":
        raise typer.Exit(1)


def pull(
    collection: Annotated[str, typer.Argument(help="Name of the collection.")],
    out: Annotated[Path, typer.Option(help="Folder to write to; it must not exist.")] = Path("pulled"),
    version: Version = None,
    url: Url = None,
) -> None:
    """Write the files of a version that you pushed."""
    if out.exists():
        raise InvalidRequest(f"{out} exists already: give another --out")
    found = _pulled(collection, version, url)
    out.mkdir(parents=True)
    for name, text in found.files.items():
        (out / Path(name).name).write_text(text, encoding="utf-8")
    typer.echo(f"{found.collection} version {found.version} ({found.status}): {out}")


def diff(folder: Folder, version: Version = None, url: Url = None) -> None:
    """Show how the files of a folder differ from those on the server; exit code 1 where they do."""
    found = _pulled(folder.resolve().name, version, url)
    here = _files(folder)
    changes = [
        line
        for name in sorted({*here, *found.files})
        for line in difflib.unified_diff(
            found.files.get(name, "").splitlines(),
            here.get(name, "").splitlines(),
            f"version {found.version}/{name}",
            f"{folder}/{name}",
            lineterm="",
        )
    ]
    for line in changes:
        typer.echo(line)
    if changes:
        raise typer.Exit(1)


def _pulled(collection: str, version: int | None, url: str | None) -> PulledCollection:
    with connected(url) as client:
        return client.pull_scenarios(collection, version=version)


def _files(folder: Path) -> dict[str, str]:
    """What belongs to a collection: its YAML files, and the lines beside them."""
    paths = sorted(path for path in folder.iterdir() if path.suffix in (".yaml", ".jsonl"))
    if not any(path.name == "collection.yaml" for path in paths):
        raise InvalidRequest(f"{folder} has no collection.yaml: give the folder of a collection")
    try:
        return {path.name: path.read_text(encoding="utf-8") for path in paths}
    except (OSError, UnicodeDecodeError) as error:
        raise LabsError(f"{folder} cannot be read: {error}") from None
