"""Everything that compiled scenarios follow from, as one digest: their files, the code that reads them, its libraries.

Of a folder of collections it takes the files that a collection can be made of, whole and by name, and how messages
call the folder. The code is all Python of scenarios and personas; it is looked at once in a process, since the
modules of a process stay what they were when an update replaces their files.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import personas
import scenarios
from scenarios.lint import is_packaged
from scenarios.yamlfile import relative_name

SUFFIXES = (".yaml", ".yml", ".json", ".jsonl")
_LIBRARIES = ("google-re2", "jsonschema", "numpy", "pydantic", "pydantic-core", "PyYAML", "simpleeval")


def key_of(root: Path) -> str | None:
    """The digest of what lies below a folder of collections, and of what reads it; None if it cannot be told."""
    try:
        digest = hashlib.sha256(_code().encode())
        _add(digest, relative_name(root).encode())
        _add(digest, str(is_packaged(root)).encode())
        _add_files(digest, root, sorted(_files_of_collections(root)))
    except (OSError, PackageNotFoundError):
        return None
    return digest.hexdigest()[:40]


def _files_of_collections(root: Path) -> Iterator[Path]:
    for folder in root.iterdir():
        if folder.is_dir():
            yield from (each for each in folder.iterdir() if each.name.endswith(SUFFIXES))


@cache
def _code() -> str:
    """The digest of code, with the files that come with it for all collections, and of the libraries it uses."""
    digest = hashlib.sha256(repr((sys.implementation.name, sys.version_info)).encode())
    for library in _LIBRARIES:
        _add(digest, f"{library} {version(library)}".encode())
    for package in (Path(each).parent for each in (scenarios.__file__, personas.__file__) if each):
        _add_files(digest, package, sorted([*package.rglob("*.py"), *package.glob("*.yaml")]))
    return digest.hexdigest()


def _add_files(digest: hashlib._Hash, root: Path, files: Iterable[Path]) -> None:
    for path in files:
        _add(digest, str(path.relative_to(root)).encode(errors="surrogateescape"))
        _add(digest, path.read_bytes() if path.is_file() else b"no file")


def _add(digest: hashlib._Hash, part: bytes) -> None:
    """With its length, so that no two sequences of parts are one."""
    digest.update(len(part).to_bytes(8, "big") + part)
