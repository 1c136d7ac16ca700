"""Backs up everything a server keeps, and brings it back: database, pepper, and the files of the data folder."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from reward_server import __version__
from reward_server.auth import pepper
from reward_server.backup.archive import pack, unpack
from reward_server.errors import ConfigurationError
from reward_server.settings import Settings
from reward_server.store.backup import Contents, copy_in, copy_out
from reward_server.store.engine import sqlite_file
from reward_server.training.folder import run_folders

_DATABASE, _FILES = "database", "files"


@dataclass(frozen=True)
class BackupResult:
    """The result of a backup: what was written, or brought back."""

    engine: str
    revision: str
    created_at: str
    files: int
    """Of the data folder, besides the database and the pepper."""
    size_bytes: int
    runs_left_out: int = 0
    """Training runs whose folders are not in it."""


async def back_up(settings: Settings, archive: Path) -> BackupResult:
    """Write everything into one file; a server may run meanwhile."""
    with _staging(archive.parent) as folder:
        (folder / _DATABASE).mkdir()
        contents = await copy_out(settings.database, folder / _DATABASE)
        # After the database: a model that a row names is there, too.
        count = await asyncio.to_thread(_copy_files, settings, folder / _FILES)
        (folder / pepper.FILE_NAME).write_bytes(await asyncio.to_thread(pepper.pepper_of, settings))
        created_at = datetime.now(UTC).isoformat(timespec="seconds")
        about = {**asdict(contents), "labs": __version__, "created_at": created_at}
        size = await asyncio.to_thread(pack, folder, archive, about)
    return BackupResult(contents.engine, contents.revision, created_at, count, size, len(run_folders(settings.runs)))


async def restore(settings: Settings, archive: Path, *, force: bool) -> BackupResult:
    """Make database, pepper and files what the archive says; `ConfigurationError` if that would replace something."""
    settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _staging(settings.data) as folder:
        about = await asyncio.to_thread(unpack, archive, folder)
        secret = (folder / pepper.FILE_NAME).read_bytes()
        _require_pepper(settings, secret, force=force)
        contents = Contents(about["engine"], about["revision"], about["tables"])
        (folder / _DATABASE).mkdir(exist_ok=True)
        await copy_in(settings.database, folder / _DATABASE, contents, force=force)
        count = await asyncio.to_thread(_put_files, folder / _FILES, settings.data)
        if settings.pepper is None:
            _put_pepper(settings.data / pepper.FILE_NAME, secret)
    return BackupResult(contents.engine, contents.revision, about["created_at"], count, _size(archive))


def _size(archive: Path) -> int:
    return archive.stat().st_size


@contextmanager
def _staging(beside: Path) -> Iterator[Path]:
    """A folder for its owner alone, on the disk where the result goes; gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix=".labs-backup-", dir=beside))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _copy_files(settings: Settings, target: Path) -> int:
    """Everything in the data folder that is neither the database nor made again by itself."""
    target.mkdir()
    data, count = settings.data, 0
    if not data.is_dir():
        return 0
    for path in sorted(data.rglob("*")):
        inside = path.relative_to(data)
        if path.is_file() and not path.is_symlink() and not _is_left_out(settings, path, inside):
            (target / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / inside)
            count += 1
    return count


def _is_left_out(settings: Settings, path: Path, inside: Path) -> bool:
    # After a move to PostgreSQL the old file is still there, with conversations that may have been deleted since.
    databases = {settings.sqlite, sqlite_file(settings.database)}
    first = inside.parts[0]
    return (
        first == pepper.FILE_NAME
        or any(part.startswith(".") for part in inside.parts)
        or path.is_relative_to(settings.cache or settings.data / "cache")
        or path.is_relative_to(settings.learning)
        or path.is_relative_to(settings.runs)
        or any(path.parent == one.parent and path.name.startswith(one.name) for one in databases if one is not None)
    )


def _put_files(source: Path, data: Path) -> int:
    files = [path for path in sorted(source.rglob("*")) if path.is_file()] if source.is_dir() else []
    for path in files:
        place = data / path.relative_to(source)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.replace(place)
    return len(files)


def _require_pepper(settings: Settings, secret: bytes, *, force: bool) -> None:
    """The keys of the backup have to work afterwards."""
    if settings.pepper is not None:
        if settings.pepper.get_secret_value().encode() != secret:
            raise ConfigurationError("LABS_PEPPER is not the one that the keys of this backup were made with")
        return
    path = settings.data / pepper.FILE_NAME
    if path.exists() and path.read_bytes().strip() != secret and not force:
        raise ConfigurationError(f"{path} is another pepper than the backup's: --force replaces it")


def _put_pepper(path: Path, secret: bytes) -> None:
    draft = path.with_name(f".{path.name}-restoring")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(secret)
    draft.replace(path)
