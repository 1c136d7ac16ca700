"""Reads rows from JSONL, JSON or CSV files, plain or gzipped, one at a time.

A row that cannot be read is a row with a problem: it is counted and reported, and never stops a run.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from reward_server.errors import InvalidRequest

MAX_LINE_CHARACTERS = 16 * 1024 * 1024
MAX_JSON_BYTES = 512 * 1024 * 1024
_ENDINGS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json", ".csv": "csv", ".tsv": "tsv"}


NOT_UTF8 = "not UTF-8"
_FOREIGN = re.compile("[\udc80-\udcff]")
"""What bytes that are not UTF-8 are read as; written as an escape in JSON it is a character like any other."""


@dataclass(frozen=True)
class InputRow:
    """One row of the input: its position from 1, and its data or what is wrong with it."""

    number: int
    data: Any = None
    problem: str | None = None


def read_rows(path: Path) -> Iterator[InputRow]:
    """The rows of a file; its kind is told by its name, or else by its first character."""
    try:
        with _opened(path) as stream:
            yield from _READERS[_kind(path, stream)](stream)
    except (OSError, EOFError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InvalidRequest(f"{path} cannot be read: {why}") from error


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    with path.open("rb") as raw:
        binary = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw
        with io.TextIOWrapper(binary, encoding="utf-8-sig", errors="surrogateescape", newline="") as stream:
            yield stream


def _kind(path: Path, stream: TextIO) -> str:
    name = path.with_suffix("") if path.suffix == ".gz" else path
    if name.suffix.lower() in _ENDINGS:
        return _ENDINGS[name.suffix.lower()]
    first = stream.read(1)
    stream.seek(0)
    return {"[": "json", "{": "jsonl"}.get(first, "csv")


def _jsonl(stream: TextIO) -> Iterator[InputRow]:
    number = 0
    while line := stream.readline(MAX_LINE_CHARACTERS):
        number += 1
        if len(line) == MAX_LINE_CHARACTERS:
            while (rest := stream.readline(MAX_LINE_CHARACTERS)) and not rest.endswith("\n"):
                pass
            yield InputRow(number, problem="the line is too long")
        elif line.strip():
            yield _parsed(number, line)


def _parsed(number: int, text: str) -> InputRow:
    if _FOREIGN.search(text):
        return InputRow(number, problem=NOT_UTF8)
    try:
        return InputRow(number, json.loads(text))
    except json.JSONDecodeError as error:
        return InputRow(number, problem=f"not JSON at {_place(error)}")
    except RecursionError:
        return InputRow(number, problem="nested too deeply")
    except ValueError:  # Python reads no number of more than 4,300 digits
        return InputRow(number, problem="a number with too many digits")


def _place(error: json.JSONDecodeError) -> str:
    """The place where the text broke. Of one that was cut off that is its end, not the next line or first quote."""
    text = error.doc.rstrip()
    broke = len(text) if error.msg.startswith("Unterminated string") else min(error.pos, len(text))
    line, column = text.count("\n", 0, broke) + 1, broke - text.rfind("\n", 0, broke)
    return f"line {line}, column {column}" if line > 1 else f"column {column}"


def _json(stream: TextIO) -> Iterator[InputRow]:
    text = stream.read(MAX_JSON_BYTES + 1)
    if len(text) > MAX_JSON_BYTES:
        raise InvalidRequest("the JSON file is too large: convert it to JSONL")
    parsed = _parsed(1, text)
    if parsed.problem:
        raise InvalidRequest(f"the file is {parsed.problem}")
    data = parsed.data
    if isinstance(data, dict) and isinstance(data.get("simulations"), list):
        data = data["simulations"]  # the results of a run of tau2-bench
    if isinstance(data, dict):
        lists = [value for value in data.values() if isinstance(value, list)]
        data = lists[0] if len(lists) == 1 and "messages" not in data else [data]
    for number, item in enumerate(data if isinstance(data, list) else [data], 1):
        yield InputRow(number, item)


def _csv(stream: TextIO, delimiter: str = ",") -> Iterator[InputRow]:
    csv.field_size_limit(MAX_LINE_CHARACTERS)
    reader = csv.DictReader(stream, delimiter=delimiter)
    number = 0
    while True:
        number += 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield InputRow(number, problem=f"not CSV: {error}")
            continue
        fields = {key: value for key, value in row.items() if key is not None}
        # A row with more fields than names has a list of the rest, which is nobody's.
        foreign = any(_FOREIGN.search(text) for pair in fields.items() for text in pair if isinstance(text, str))
        yield InputRow(number, problem=NOT_UTF8) if foreign else InputRow(number, fields)


def _tsv(stream: TextIO) -> Iterator[InputRow]:
    return _csv(stream, delimiter="\t")


_READERS = {"jsonl": _jsonl, "json": _json, "csv": _csv, "tsv": _tsv}
