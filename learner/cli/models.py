"""`export`, `serve`: what to do with a trained policy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from learner.cli.options import RunFolder, Which


def export(
    folder: RunFolder,
    to: Annotated[Path, typer.Argument(metavar="TO", help="New folder to write.")],
    which: Which = "best",
) -> None:
    """Write a checkpoint as a plain folder that transformers and vLLM load; adapters are merged in."""
    from learner.models import merged, write
    from learner.stored import open_stored

    if to.exists() and any(to.iterdir()):
        raise ValueError(f"{to} is not empty; choose a new folder")
    stored = open_stored(folder, which)
    write(merged(stored.model), stored.tokenizer, to)
    step = "" if stored.played is None else f", update {stored.played.step}"
    typer.echo(f"exported {folder} ({which}{step}) to {to}")


def serve(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of a run or of a transformers model.")],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for a free one.")] = 8400,
    which: Which = "best",
    api_key: Annotated[
        str | None,
        typer.Option(envvar="LEARNER_API_KEY", help="Key that every caller must send; required beyond loopback."),
    ] = None,
) -> None:
    """Serve a small policy as an OpenAI-compatible endpoint; for a large one, export it and use vLLM."""
    from learner.serving import listen
    from learner.stored import open_stored

    if host not in ("127.0.0.1", "localhost", "::1") and not api_key:
        raise ValueError(f"--host {host} is open to others; set a key with LEARNER_API_KEY")
    stored = open_stored(folder, which)
    server = listen(stored, host, port, api_key)
    typer.echo(f"{stored.name} at http://{host}:{server.server_address[1]}/v1 (Ctrl-C ends it)")
    try:
        server.serve_forever(poll_interval=0.1)
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
