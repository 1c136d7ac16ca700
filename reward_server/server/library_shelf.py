"""Compiled scenarios, kept on disk between processes: to read the packaged ones anew takes seconds of every start.

A file is named after everything that its content follows from (`library_key`), so an edited scenario, other code or
another Python has simply another name. Only a library without errors is kept. What cannot be read is read anew from
the scenarios; what cannot be written is not kept: the shelf saves time and is never needed.

A file is a SHA-256 and the pickle that it is of. A pickle can do harm to whoever reads it, so three things hold:
the folder and the file belong to the user of this process and nobody else may write to them, or they are not read;
what does not have its digest is not unpickled; and a pickle finds no names but the classes of scenarios and personas
and the few of `_ELSEWHERE`. It holds the private half of scenarios: nobody else may read it, either.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import secrets
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from reward_server.folders import make_private
from reward_server.server.library_key import key_of
from scenarios.library import (
    Catalog,
    Library,
    SealedScenario,
    Vault,
    load_library,
    nobody,
    uncollected,
)
from scenarios.yamlfile import FileFinding

KEPT = 8
"""So many files stay, the newest: an author leaves one behind with each edit."""

_OURS = ("personas", "scenarios")
_ELSEWHERE = {("fractions", "Fraction")}
_DIGEST_BYTES = hashlib.sha256().digest_size
_Parts = tuple[Catalog, Mapping[tuple[str, str], tuple[SealedScenario, ...]], str, tuple[FileFinding, ...]]


class LibraryShelf:
    """A folder of libraries, one file each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, root: Path) -> Library:
        """The library of the scenarios below `root`, as `load_library` reads it.

        Raises:
            ScenarioFileError: a file cannot be used.
        """
        key = key_of(root)
        kept = None if key is None else self._find(key)
        if kept is not None:
            return kept
        library = load_library(root)
        # Of files that were edited meanwhile, nobody can say which of their contents was read.
        if key is not None and key_of(root) == key:
            self._keep(key, library)
        return library

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.library"

    def _find(self, key: str) -> Library | None:
        try:
            content = _read_own(self._path(key))
            if hashlib.sha256(content[_DIGEST_BYTES:]).digest() != content[:_DIGEST_BYTES]:
                return None
            with uncollected():
                return _whole(_Unpickler(io.BytesIO(content[_DIGEST_BYTES:])).load())
        except Exception:  # noqa: BLE001 (whatever is wrong with a file that can be made again, it is made again)
            return None

    def _keep(self, key: str, library: Library) -> None:
        """Write a file that appears whole or not at all."""
        path = self._path(key)
        draft = path.with_name(f".{path.name}-{secrets.token_hex(6)}")
        with suppress(OSError, pickle.PicklingError):
            make_private(self._folder)
            _require_own(self._folder.lstat(), stat.S_ISDIR)
            content = pickle.dumps(_parts(library), protocol=5)
            try:
                with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                    file.write(hashlib.sha256(content).digest() + content)
                os.replace(draft, path)
            finally:
                draft.unlink(missing_ok=True)
            for old in self._outdated():
                old.unlink(missing_ok=True)

    def _outdated(self) -> list[Path]:
        """All but the newest, drafts of processes that were killed among them."""
        by_age = sorted(self._folder.iterdir(), key=lambda each: each.lstat().st_mtime_ns, reverse=True)
        return by_age[KEPT:]


class _Unpickler(pickle.Unpickler):
    """Finds the classes that a library is made of, and nothing else."""

    def find_class(self, module: str, name: str) -> type:
        if module.partition(".")[0] in _OURS or (module, name) in _ELSEWHERE:
            found = super().find_class(module, name)
            if isinstance(found, type) and found.__module__ == module:
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is no part of a library")


def _read_own(path: Path) -> bytes:
    """The bytes of a file that nobody but this user may have written; `OSError` of any other."""
    _require_own(path.parent.lstat(), stat.S_ISDIR)
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        _require_own(os.fstat(file.fileno()), stat.S_ISREG)
        return file.read()


def _require_own(state: os.stat_result, is_kind: Callable[[int], bool]) -> None:
    others_write = state.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if not is_kind(state.st_mode) or state.st_uid != os.geteuid() or others_write:
        raise PermissionError


def _parts(library: Library) -> _Parts:
    sealed = {name: library.vault.variants(*name) for name in library.vault.names()}
    return library.catalog, sealed, library.digest, library.warnings


def _whole(parts: _Parts) -> Library:
    catalog, sealed, digest, warnings = parts
    vault = Vault({name: tuple(map(_with_nobody, variants)) for name, variants in sealed.items()})
    return Library(catalog, vault, digest, warnings)


def _with_nobody(sealed: SealedScenario) -> SealedScenario:
    """A rubric without a persona has the same case as those that labs bring, so that a conversation is read once."""
    return sealed if sealed.has_persona else replace(sealed, case=nobody())
