"""Scenario files as an author edits them: which one of a collection, its text, and what is wrong at which line."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from reward_server.console.forms import Form
from reward_server.errors import FieldProblem, InvalidRequest, LabsError
from scenarios.own import write_files
from scenarios.template import begin, begin_rubric
from scenarios.yamlfile import FileFinding

CARD = "collection.yaml"
FILE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*(\.(rubric|agents|background|turns|logs|variants))?\.(yaml|jsonl)")
_AT_A_LINE = re.compile(r"(?P<file>[\w.-]+):(?P<line>\d+): (?P<message>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong in a file, as a page says it."""

    message: str
    file: str = ""
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """A file of a collection on the way to be saved."""

    files: Mapping[str, str] = field(repr=False)
    """As they are kept."""
    name: str
    text: str = field(repr=False)

    def saved(self) -> dict[str, str]:
        """The files of the collection with this text in them."""
        return {**self.files, self.name: self.text}

    def without(self) -> dict[str, str]:
        """The files of the collection but for this one."""
        return {name: text for name, text in self.files.items() if name != self.name}


def opened(files: Mapping[str, str], wanted: str) -> Draft:
    """The file that is asked for, a new one if there is none of that name; else the first that holds a scenario.

    Raises:
        InvalidRequest: no file may be called so.
    """
    if not wanted:
        scenarios = [name for name in files if name.count(".") == 1 and name.endswith(".yaml") and name != CARD]
        wanted = next(iter(scenarios or files), CARD)
    if not FILE.fullmatch(wanted):
        raise InvalidRequest("A file is called SLUG.yaml, SLUG.rubric.yaml, SLUG.turns.jsonl, …")
    return Draft(files, wanted, files.get(wanted, ""))


def edited(files: Mapping[str, str], form: Form) -> Draft:
    """What a form brings of a file; raises as `opened`."""
    return Draft(files, opened(files, form.line("file")).name, form.text("text").replace("\r\n", "\n"))


def begun(files: Mapping[str, str], collection: str, slug: str, *, has_persona: bool) -> dict[str, str]:
    """The files with a commented example beside them, as `labs scenarios new` writes it.

    Raises:
        InvalidRequest: it cannot be called so, or is there already.
    """
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        if files:
            write_files(root, collection, files)
        try:
            (begin if has_persona else begin_rubric)(f"{collection}/{slug}", root)
        except ValueError as error:
            message = "is there already: choose another name" if "exists" in str(error) else str(error)
            raise InvalidRequest(errors=[FieldProblem(("slug",), message)]) from None
        found = sorted((root / collection).iterdir())
        # The example tells its command; the folder it was written to is not there any more.
        return {path.name: path.read_text(encoding="utf-8").replace(f" --dir {place}", "") for path in found}


def told(findings: Iterable[str]) -> list[Finding]:
    """Lines of findings, with their place where they have one."""
    return [
        Finding(found["message"], found["file"], int(found["line"]))
        if (found := _AT_A_LINE.fullmatch(each))
        else Finding(each)
        for each in findings
    ]


def in_files(findings: Iterable[FileFinding]) -> list[Finding]:
    """The same of files on disk."""
    return [Finding(each.message, Path(each.file).name, each.line) for each in findings]


def refused(error: LabsError) -> Sequence[Finding]:
    """What an error says against the files."""
    problems = error.errors if isinstance(error, InvalidRequest) else ()
    return told(each.msg for each in problems) or [Finding(error.message)]
