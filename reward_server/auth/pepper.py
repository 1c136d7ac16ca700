"""The secret that API keys are hashed with, so that a stolen database alone verifies no key.

It lives in a file of its own beside the database, readable by its owner alone, and is made once: of
several processes that start together one wins and the others read what it wrote.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from reward_server.errors import ConfigurationError
from reward_server.settings import Settings

FILE_NAME = "pepper"
_BYTES = 32


def pepper_of(settings: Settings) -> bytes:
    """The secret of this server: the one that is set, else the one of its data directory; blocking."""
    if settings.pepper is not None:
        return settings.pepper.get_secret_value().encode()
    return load_pepper(settings.data)


def load_pepper(data: Path) -> bytes:
    """The secret in this data directory, made on first use."""
    path = data / FILE_NAME
    try:
        if not path.exists():
            _create(path)
        pepper = path.read_bytes().strip()
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be used: {error.strerror}") from error
    if len(pepper) < _BYTES:
        raise ConfigurationError(f"{path} is damaged; without the secret it held, no API key is valid")
    return pepper


def _create(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{FILE_NAME}-{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_hex(_BYTES).encode())
            file.flush()
            os.fsync(file.fileno())
        # Unlike a rename, a link never replaces the secret of a process that was faster.
        os.link(draft, path)
    except FileExistsError:
        return
    finally:
        draft.unlink()
