"""Strict, safe YAML: text in, a validated model out, and every error with its file and line.

Only plain data is accepted: no anchors, aliases, merge keys, tags or second documents, so a small
file can never unfold into a large one. Plain scalars follow the YAML 1.2 core schema (`yes`, `no`
and `12:30` stay text). Messages never quote values: what stands in a scenario file is private.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from scenarios.spelling import nearest

MAX_BYTES = 256 * 1024
MAX_DEPTH = 24
MAX_NODES = 20_000

_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]{1,18}(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?")
_WORDS = {"true": True, "True": True, "false": False, "False": False, "null": None, "~": None, "": None}
_SHOWABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,39}")
Loc = tuple[str | int, ...]
_Model = TypeVar("_Model", bound=BaseModel)


def relative_name(path: Path) -> str:
    """A path as messages show it: relative to the working directory if it lies inside."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


class Severity(StrEnum):
    """How grave a finding is."""

    ERROR = "error"
    """The file cannot be used; a server with it does not start."""
    WARNING = "warning"
    """The file works; its author should look at this place."""


@dataclass(frozen=True)
class FileFinding:
    """One thing to mend in a file: where, what, and how."""

    file: str
    line: int
    message: str
    severity: Severity = Severity.ERROR
    loc: Loc = ()
    """The place in the data of the file."""

    def __str__(self) -> str:
        said = self.message if self.severity is Severity.ERROR else f"{self.severity}: {self.message}"
        return f"{self.file}:{self.line}: {said}"


def errors_of(findings: Iterable[FileFinding]) -> list[FileFinding]:
    """Those that the file cannot be used with."""
    return [finding for finding in findings if finding.severity is Severity.ERROR]


class ScenarioFileError(Exception):
    """Scenario files that cannot be used; the text is one `file:line: what and how` per finding."""

    def __init__(self, findings: list[FileFinding]) -> None:
        super().__init__("\n".join(str(finding) for finding in findings))
        self.findings = tuple(findings)


@dataclass
class Document:
    """The data of one file and the line of every node in it."""

    file: str
    data: Any
    lines: dict[Loc, int] = field(default_factory=dict)
    parts: dict[Loc, tuple[Document, Loc]] = field(default_factory=dict)
    """What of the data was read from another file: where it is put -> the file and the place there."""

    def line(self, loc: Loc) -> int:
        """The line of the node at `loc`, or of the nearest node above it."""
        while loc and loc not in self.lines:
            loc = loc[:-1]
        return self.lines.get(loc, 1)

    def origin(self, loc: Loc) -> tuple[Document, Loc]:
        """The file that the node at `loc` was read from, and its place there."""
        for depth in range(len(loc), -1, -1):
            if loc[:depth] in self.parts:
                part, at = self.parts[loc[:depth]]
                return part, (*at, *loc[depth:])
        return self, loc

    def finding(self, loc: Loc, message: str, severity: Severity = Severity.ERROR) -> FileFinding:
        """A finding at the node `loc`."""
        document, at = self.origin(loc)
        return FileFinding(document.file, document.line(at), message, severity, at)


def read_document(path: Path, name: str | None = None) -> Document:
    """Read one file; `name` is what messages call it."""
    document = Document(name or str(path), None)
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise _refuse(document, 1, f"the file is larger than {MAX_BYTES // 1024} KiB: split it or shorten it")
        text = raw.decode("utf-8")
    except OSError as error:
        raise _refuse(document, 1, f"the file cannot be read ({error.strerror}): check that it exists") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise _refuse(document, line, "the file is not UTF-8 here: save it as UTF-8") from None
    try:
        document.data = _Builder(document, yaml.parse(text, Loader=yaml.CSafeLoader)).build()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        problem = error.problem or "this is not YAML"
        raise _refuse(document, line, f"{problem}: check indentation, and quote text that holds `: ` or ` #`") from None
    except yaml.YAMLError:
        raise _refuse(document, 1, "the file holds a character that YAML forbids: remove control characters") from None
    return document


def load(path: Path, model: type[_Model], name: str | None = None) -> tuple[_Model, Document]:
    """Read one file as `model`; raises `ScenarioFileError` with every schema problem at once."""
    document = read_document(path, name)
    return validated(document, model), document


def validated(document: Document, model: type[_Model]) -> _Model:
    """The data of a document as `model`; raises `ScenarioFileError` with every schema problem at once."""
    if not isinstance(document.data, dict):
        raise _refuse(document, 1, "the file must be a mapping: start with `schema: …`")
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=True, include_input=False)
        raise ScenarioFileError([_explain(document, model, detail) for detail in details]) from None


def _refuse(document: Document, line: int, message: str) -> ScenarioFileError:
    return ScenarioFileError([FileFinding(document.file, line, message)])


class _Builder:
    """Turns parser events into data, refusing everything that is more than plain data."""

    def __init__(self, document: Document, events: Iterator[Any]) -> None:
        self._document = document
        self._events = events
        self._nodes = 0

    def build(self) -> Any:
        data: Any = None
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self._refusal(event, "a second document starts here: keep one scenario per file")
                data = self._node(next(self._events), ())
        return data

    def _refusal(self, event: Any, message: str) -> ScenarioFileError:
        return _refuse(self._document, _line(event), message)

    def _node(self, event: Any, loc: Loc) -> Any:
        self._check(event, loc)
        self._document.lines.setdefault(loc, _line(event))
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(loc)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(loc)
        return _scalar(event)

    def _check(self, event: Any, loc: Loc) -> None:
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise self._refusal(event, "anchors and aliases are not allowed: write the text out")
        if event.tag is not None:
            raise self._refusal(event, "tags (`!…`) are not allowed: quote the text if it begins with `!`")
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise self._refusal(event, f"the file has more than {MAX_NODES} nodes: shorten it")
        if len(loc) > MAX_DEPTH:
            raise self._refusal(event, f"nested deeper than {MAX_DEPTH} levels: flatten it")

    def _mapping(self, loc: Loc) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise self._refusal(event, "a key must be a plain word: quote text that begins with `[` or `{`")
            self._check(event, loc)
            key = event.value
            if key == "<<" and not event.style:
                raise self._refusal(event, "merge keys (`<<`) are not allowed: write the keys out")
            if key in mapping:
                raise self._refusal(event, f"the key {shown(key)} stands here twice: remove one")
            here = (*loc, key)
            self._document.lines[here] = _line(event)
            mapping[key] = self._node(next(self._events), here)
        return mapping

    def _sequence(self, loc: Loc) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(event, (*loc, len(items))))
        return items


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _scalar(event: Any) -> Any:
    text = str(event.value)
    if event.style:  # quoted or block text; the style of a plain scalar is empty
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        return float(text)
    return text


def showable(loc: Loc) -> Loc:
    """A location as a message may show it."""
    return tuple(part if isinstance(part, int) or _SHOWABLE.fullmatch(part) else "(text)" for part in loc)


def shown(key: str | int) -> str:
    """A key as a message may show it: a line of private text that became a key by accident is not shown."""
    return f"`{key}`" if _SHOWABLE.fullmatch(str(key)) else "(text)"


def dotted(loc: Loc) -> str:
    """A location as authors read it: `private.persona.facts[3].says`."""
    text = ""
    for part in showable(loc):
        text += f"[{part}]" if isinstance(part, int) else ("." if text else "") + part
    return text


def _explain(document: Document, model: type[BaseModel], detail: Any) -> FileFinding:
    loc: Loc = tuple(detail["loc"])
    kind, context = detail["type"], detail.get("ctx", {})
    place = dotted(document.origin(loc)[1])
    where = f"`{place}`" if place else "the file"
    if kind == "extra_forbidden":
        return document.finding(loc, f"unknown key {shown(loc[-1])}{_known_keys(model, loc)}")
    if kind == "missing":
        return document.finding(loc[:-1], f"{where} is missing: add it{_choices(_annotation(model, loc))}")
    message = _RULES.get(kind, "")
    if message:
        return document.finding(loc, f"{where} {message.format(**context)}")
    reason = detail["msg"].removeprefix("Value error, ")
    return document.finding(loc, f"{where}: {reason[:1].lower()}{reason[1:]}")


_RULES = {
    "string_type": "must be text: put it in quotes",
    "string_too_long": "is longer than {max_length} characters: shorten it",
    "string_too_short": "is empty: write something or remove the key",
    "string_pattern_mismatch": "must match {pattern}: rename it",
    "too_short": "needs at least {min_length} entries: add more",
    "too_long": "has more than {max_length} entries: remove some",
    "tuple_type": "must be a list: write one `- entry` per line",
    "dict_type": "must be a mapping: write `key: value` lines",
    "model_type": "must be a mapping: write `key: value` lines",
    "enum": "must be one of {expected}",
    "literal_error": "must be {expected}",
    "bool_parsing": "must be true or false",
    "float_parsing": "must be a number",
    "int_parsing": "must be a whole number",
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be greater than {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be less than {lt}",
}


def _known_keys(model: type[BaseModel], loc: Loc) -> str:
    target = _model_in(_annotation(model, loc[:-1]))
    if target is None:
        return ": remove it"
    known = [info.alias or name for name, info in target.model_fields.items()]
    close = nearest(str(loc[-1]), known)
    meant = f": did you mean `{close}`?" if close else ":"
    return f"{meant} Known keys here are {', '.join(known)}"


def _choices(annotation: Any) -> str:
    """The values that a key may have, where the schema lists them: " (json_schema or options)"."""
    if get_origin(annotation) is Literal:
        values = [str(value) for value in get_args(annotation)]
    elif isinstance(annotation, type) and issubclass(annotation, Enum):
        values = [str(member.value) for member in annotation]
    else:
        return ""
    return f" ({' or '.join(filter(None, [', '.join(values[:-1]), values[-1]]))})"


def _annotation(model: type[BaseModel], loc: Loc) -> Any:
    """The annotation of what lies at a location; none if the schema does not know it."""
    owner: Any = model
    for part in loc:
        if owner is None:
            break
        owner = annotation_below(owner, part)
    return owner


def annotation_below(owner: Any, part: str | int) -> Any:
    """The annotation one location part further down."""
    if isinstance(part, int):
        arguments = [a for a in get_args(owner) if a is not Ellipsis]
        return arguments[0] if arguments else None
    target = _model_in(owner)
    if target is not None:
        for name, info in target.model_fields.items():
            if part in (name, info.alias):
                return info.annotation
        return None
    arguments = list(get_args(owner))
    return arguments[-1] if get_origin(owner) is dict and arguments else None


def _model_in(annotation: Any) -> type[BaseModel] | None:
    candidates = [annotation, *get_args(annotation)] if get_origin(annotation) is not dict else []
    for candidate in candidates:
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None
