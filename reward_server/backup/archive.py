"""One file that holds a folder, and says what is in it: a compressed tar with a manifest of digests.

Whoever has it has the pepper and all conversations: it is written for its owner alone. It is whole or not there.
"""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
from pathlib import Path, PurePosixPath
from typing import Any

from reward_server.errors import ConfigurationError

MANIFEST = "manifest.json"
FORMAT = 1
_CHUNK = 1 << 20


def pack(folder: Path, archive: Path, about: dict[str, Any]) -> int:
    """Write everything below `folder`, and what it is `about`; the bytes of the archive."""
    files = {str(path.relative_to(folder)): _digest(path) for path in sorted(folder.rglob("*")) if path.is_file()}
    manifest = folder / MANIFEST
    manifest.write_text(json.dumps({"format": FORMAT, **about, "files": files}, indent=1))
    draft = archive.with_name(f".{archive.name}.part")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            with tarfile.open(fileobj=file, mode="w:gz", compresslevel=6) as tar:
                for name in (MANIFEST, *files):
                    tar.add(folder / name, arcname=name, recursive=False)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(archive)
    finally:
        draft.unlink(missing_ok=True)
    return archive.stat().st_size


def unpack(archive: Path, folder: Path) -> dict[str, Any]:
    """Write what it holds below `folder`; what it is about. `ConfigurationError` if a byte of it is not as written."""
    try:
        with tarfile.open(archive, mode="r:gz") as tar:
            members = [member for member in tar if member.isfile() and _is_inside(member.name)]
            tar.extractall(folder, members=members, filter="data")
        about: dict[str, Any] = json.loads((folder / MANIFEST).read_text())
        files: dict[str, str] = about.pop("files")
        if about["format"] != FORMAT:
            raise ConfigurationError(f"{archive} was made by another version of Labs")
        broken = [name for name, digest in files.items() if _digest(folder / name) != digest]
    except (tarfile.TarError, EOFError, KeyError, ValueError, FileNotFoundError) as error:
        if not archive.exists():
            raise
        raise ConfigurationError(f"{archive} is not a backup of Labs, or is damaged") from error
    if broken:
        raise ConfigurationError(f"{archive} is damaged: {broken[0]} is not what was backed up")
    return about


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
