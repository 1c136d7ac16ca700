"""A turn that was understood wrongly becomes a labelled turn: a line of `<slug>.turns.jsonl`, written where it belongs.

That is a new version of the lab's own collection, or the file on disk in development mode; a line of a packaged
scenario is downloaded.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from enum import StrEnum
from typing import Any

from reward_server.console.forms import Form
from reward_server.console.scenario_files import folder_of
from reward_server.console.visit import Visit
from reward_server.errors import CollectionNotFound, FieldProblem, InvalidRequest
from scenarios.own import owner_of
from scenarios.turns import KINDS, SUFFIX

Json = dict[str, Any]
NAMELESS = frozenset({"foreign", "social", "summary"})
"""Kinds of turns that ask for nothing in the case."""


class Place(StrEnum):
    """Where a line goes."""

    OWN = "own"
    DISK = "disk"
    DOWNLOAD = "download"


async def place_of(visit: Visit, collection: str, scenario: str) -> Place:
    """The place for lines of a scenario that this visitor wrote."""
    if owner_of(collection) is not None:
        return Place.OWN
    folder = folder_of(visit)
    try:
        files = {} if folder is None else await folder.files(collection)
    except CollectionNotFound:
        files = {}
    return Place.DISK if f"{scenario}.yaml" in files else Place.DOWNLOAD


def line_of(form: Form, turn: str, before: str, topics: Collection[str], commitments: Collection[str]) -> str:
    """The line that a form makes of a turn, which the persona's line `before` went before.

    Raises:
        InvalidRequest: the labels do not fit each other, or the case.
    """
    kind = form.line("kind")
    asks, commits = form.all("asks"), form.all("commits")
    quote = " ".join(form.line("quote").split())
    problem = _problem(kind, asks, commits) or _unknown({*asks} - {*topics} | ({*commits} - {*commitments}))
    if not problem and quote and (len(commits) != 1 or quote not in " ".join(turn.split())):
        problem = "The quote is the sentence of this turn that makes the one commitment: copy it as it stands."
    if problem:
        raise InvalidRequest(errors=[FieldProblem(("labels",), problem)])
    row: Json = {"turn": turn, "asks": asks, "commits": commits, "kind": kind, "style": "plain"}
    if before:
        row["before"] = [["persona", before]]
    if quote:
        row["quotes"] = {commits[0]: quote}
    return json.dumps(row, ensure_ascii=False)


def with_line(text: str, line: str) -> str:
    """A file of labelled turns with one more."""
    return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{line}\n"


def name_of(scenario: str) -> str:
    """The file of a scenario's labelled turns."""
    return f"{scenario}{SUFFIX}"


def _problem(kind: str, asks: list[str], commits: list[str]) -> str | None:
    if kind not in KINDS or kind == "near_commit":
        return "Choose what the turn does."
    if kind in NAMELESS and (asks or commits):
        return f"A turn that is {kind} asks for nothing in the case and promises nothing: untick them."
    if kind == "specific" and len(asks) != 1:
        return "A specific turn asks for one fact: tick it; or choose another kind."
    if kind == "double" and len(asks) < 2:
        return "A double turn asks for several facts: tick them."
    return "A turn that commits makes a commitment: tick it." if kind == "commit" and not commits else None


def _unknown(names: Collection[str]) -> str | None:
    return "The scenario has changed meanwhile. Load the page again." if names else None
