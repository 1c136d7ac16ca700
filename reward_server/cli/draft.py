"""`labs scenarios draft`: a first version of a rubric from a document or logs, by a language model."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reward_server.errors import ConfigurationError, InvalidRequest, LabsError
from reward_server.program import as_called

if TYPE_CHECKING:
    from reward_server.llm.caller import LanguageModelCaller

SHOWN = 20
"""Conversations that the model is shown."""
LOGS = (".jsonl", ".json", ".csv", ".gz")


def draft(
    name: Annotated[str, typer.Argument(metavar="SLUG", help="Name of the rubric: SLUG.yaml is written here.")],
    source: Annotated[
        Path,
        typer.Option("--from", help="A document (text), or logs (.jsonl, .json, .csv).", exists=True, dir_okay=False),
    ],
) -> None:
    """Have the language model of the settings write a first rubric; a draft until its check passes."""
    from reward_server.exam.draft import drafted, logs_to_grade
    from reward_server.llm.build import language_model
    from reward_server.settings import load_settings

    target = Path(f"{name}.yaml")
    if target.exists():
        raise InvalidRequest(f"{target} exists already: choose another name")
    model = language_model(load_settings())
    if model is None:
        raise ConfigurationError("a draft needs a language model: set LABS_LLM_PROVIDER (docs/providers.md)")
    talks = _conversations(source) if source.suffix in LOGS else []
    material = "\n".join(json.dumps(each, ensure_ascii=False) for each in talks) if talks else _document(source)
    target.write_text(asyncio.run(_closing(model, drafted(model, material))), encoding="utf-8")
    typer.echo(f"wrote {target}")
    if talks:
        logs = target.with_suffix(".logs.jsonl")
        logs.write_text(logs_to_grade(talks), encoding="utf-8")
        typer.echo(f"wrote {logs}: give each log a grade")
    typer.echo(f"next: read it, grade logs, {as_called(f'./labs scenarios check {target}')}")


async def _closing(model: LanguageModelCaller, work: Any) -> str:
    try:
        return str(await work)
    finally:
        await model.close()


def _conversations(source: Path) -> list[list[dict[str, Any]]]:
    """The first conversations of a file, in any form that `labs score` reads."""
    from itertools import islice

    from reward_server.offline.formats import BadRow, convert
    from reward_server.offline.rows import read_rows

    found: list[list[dict[str, Any]]] = []
    for row in islice(read_rows(source), SHOWN):
        try:
            found += [[dict(message) for message in each.messages] for each in convert(row.data, "auto")]
        except BadRow as error:
            raise InvalidRequest(f"{source}, row {row.number}: {error}") from None
    return found[:SHOWN]


def _document(source: Path) -> str:
    try:
        return source.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidRequest(f"{source} is no text: save it as UTF-8 text") from None
    except OSError as error:
        raise LabsError(f"{source} cannot be read: {error.strerror}") from None
