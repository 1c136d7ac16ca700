"""Writes the reference page from the code: `python -m reward_server.cli.reference > docs/reference.md`.

The page lists every setting, route, error code and command once. What the page says stands in the code: the description
of a setting, the docstring of a route, the message of an error and the help of a command.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

import typer
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from reward_server.api.errors import STATUSES
from reward_server.api.openapi import build
from reward_server.cli.main import app
from reward_server.errors import LabsError
from reward_server.server.app import create_app
from reward_server.settings import PREFIX, Settings

HEAD = """# Reference

Every setting, route, error code and command. This page is generated from the code:
`.venv/bin/python -m reward_server.cli.reference > docs/reference.md`.
"""
SETTINGS = """
## Settings

A setting is an environment variable. `./labs serve` has options for `--host`, `--port` and `--data`. The server names
each invalid setting in one line and does not start; `./labs doctor` finds variables `LABS_…` that nothing reads.
Commands that call a server read its address from `LABS_URL` and the key from `LABS_API_KEY`.
"""
ROUTES = """
## Routes

[openapi.json](openapi.json) has the fields of each route. A key needs one of the [scopes](operations.md#scopes); `any`
is any key. [api.md](api.md) has the rules that all routes share, and examples.
"""
ERRORS = """
## Error codes

`data.code` of an error response ([form](api.md#errors)). The message of a response can say more than the one below.
Status 500 stands for a message that only operators see.
"""
COMMANDS = """
## Commands

`./labs COMMAND --help` lists the options of a command.
"""
UNDESCRIBED = (
    ("`WS /api/v1/episodes/ws`", "Many episodes over [one socket](api.md#over-a-socket).", "`train`"),
    ("`WS /api/v1/compat/openenv/ws`", "An environment for [OpenEnv](doors.md#openenv).", "`train`"),
    ("`POST /mcp`", "Tools for clients of [MCP](doors.md#mcp).", "`any`; each tool its own"),
    ("`GET /metrics`", "[Metrics](monitoring.md#metrics) for Prometheus.", "`operate`, or none on loopback"),
    ("`GET /console`", "The [web console](console.md).", "no key"),
    ("`GET /docs`, `GET /openapi.json`", "The routes as pages, and as an OpenAPI document.", "no key"),
)
"""Routes that are not in the OpenAPI document: sockets and pages."""
OTHER_CODES = (
    ("`method_not_allowed`", "405", "This method is not allowed here."),
    ("`bad_row`", "a row of a file", "The row cannot be read; the message says why."),
    ("`no_scenario`", "a row of a file", "give --collection and --scenario, or name them in the row"),
    ("`worker_lost`", "an item of a job", "The worker stopped in every attempt at this item."),
)
"""Codes that belong to no class of error."""


def page() -> str:
    """The whole page."""
    parts = (
        HEAD,
        SETTINGS,
        _table(("variable", "default", "meaning"), settings()),
        ROUTES,
        _table(("route", "what it does", "scopes"), routes()),
        ERRORS,
        _table(("code", "status", "message"), errors()),
        COMMANDS,
        _table(("command", "what it does"), commands()),
    )
    return "".join(parts)


def settings() -> Iterator[tuple[str, ...]]:
    """Every environment variable, with its default and its description."""
    for name, field in Settings.model_fields.items():
        yield f"`{PREFIX}{name.upper()}`", _default(field), field.description or ""


def routes() -> Iterator[tuple[str, ...]]:
    """Every operation of the OpenAPI document, and what such a document cannot describe."""
    for path, methods in build(create_app(Settings()))["paths"].items():
        for method, operation in methods.items():
            text = _sentence(operation.get("description", operation["summary"]))
            yield f"`{method.upper()} {path}`", text, _scopes(operation)
    yield from UNDESCRIBED


def errors() -> Iterator[tuple[str, ...]]:
    """Every error that a response can name, by its status."""
    found = [(_status(kind), kind.code, kind.default_message) for kind in _tree(LabsError) if "code" in vars(kind)]
    for status, code, message in sorted(found):
        yield f"`{code}`", str(status), message
    yield from OTHER_CODES


def commands() -> Iterator[tuple[str, ...]]:
    """Every command of `./labs` that its help shows, groups resolved."""
    for path, command in _leaves("./labs", typer.main.get_command(app)):
        yield f"`{path}`", _sentence(command.help or "")


def _leaves(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    # Typer may bring a click of its own, whose groups are known by what they hold.
    for name, each in sorted(getattr(command, "commands", {}).items()):
        yield from _leaves(f"{path} {name}", each)
    if not hasattr(command, "commands") and not command.hidden:
        yield path, command


def _tree(kind: type[LabsError]) -> Iterator[type[LabsError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from _tree(each)


def _status(kind: type[LabsError]) -> int:
    return next(STATUSES[each] for each in kind.__mro__ if each in STATUSES)


def _default(field: FieldInfo) -> str:
    value: Any = field.default_factory() if field.default_factory else field.default  # type: ignore[call-arg]
    if value is None or value is PydanticUndefined or value == "":
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _scopes(operation: dict[str, Any]) -> str:
    named = [scope for each in operation.get("security", ()) for scope in each["ApiKey"]]
    if "security" not in operation:
        return "no key"
    return ", ".join(f"`{scope}`" for scope in named) or "any"


def _sentence(text: str) -> str:
    """The first paragraph on one line."""
    return " ".join(text.partition("\n\n")[0].split())


def _table(head: tuple[str, ...], lines: Iterable[tuple[str, ...]]) -> str:
    rows = [head, ("---",) * len(head), *lines]
    return "\n" + "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in rows)


if __name__ == "__main__":
    sys.stdout.write(page())
