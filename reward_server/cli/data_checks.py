"""`labs doctor` on what the server keeps: the data folder, the database, the keys, and who may read them."""

from __future__ import annotations

import asyncio
import os
import shutil

from reward_server.cli.finding import CheckFinding
from reward_server.settings import Settings
from scenarios.spelling import counted

LOW_DISK_BYTES = 500_000_000


def data(settings: Settings) -> CheckFinding:
    """Check that the folder can be written, and has room."""
    existing = next(folder for folder in (settings.data, *settings.data.absolute().parents) if folder.exists())
    if not os.access(existing, os.W_OK):
        return CheckFinding(
            "data", str(settings.data), f"{existing} is not writable; choose another folder with --data"
        )
    free = shutil.disk_usage(existing).free
    mend = "free some disk space: writes fail if the disk is full" if free < LOW_DISK_BYTES else None
    return CheckFinding("data", f"{settings.data}, {free / 1e9:.1f} GB free", mend)


def database(settings: Settings) -> CheckFinding:
    """Check that the database is of this version, and whole."""
    from reward_server.store.integrity import damage
    from reward_server.store.migrate import current, require_known, revisions

    if not _has_database(settings):
        return CheckFinding("database", "none yet; the first start creates it")
    asyncio.run(require_known(settings.database))
    if broken := asyncio.run(damage(settings.database)):
        mend = f"{'; '.join(broken)}: stop the server and restore a backup with ./labs restore"
        return CheckFinding("database", "is damaged", mend)
    found, newest = asyncio.run(current(settings.database)), revisions()[-1]
    schema = "schema is current" if found == newest else f"revision {found}, which the next start brings to {newest}"
    return CheckFinding("database", f"whole, {schema}, {counted(_count_keys(settings), 'API key')}")


def keys(settings: Settings) -> CheckFinding:
    """Check that a start would not refuse for want of a key, or of the secret that keys are hashed with."""
    from reward_server.auth.pepper import FILE_NAME, pepper_of
    from reward_server.server.callers import may_be_open

    pepper = settings.pepper is not None or (settings.data / FILE_NAME).exists()
    if pepper:
        pepper_of(settings)
    if _has_database(settings) and _count_keys(settings):
        asyncio.run(_check_pepper(settings, pepper_of(settings) if pepper else b""))
    if may_be_open(settings, keyless=not (_has_database(settings) and _count_keys(settings))):
        return CheckFinding("keys", f"none; calls on {settings.host} do not need one")
    return CheckFinding("keys", "calls need one")


def security(settings: Settings) -> CheckFinding:
    """Check who may read what the server keeps; for production all that is too weak."""
    from reward_server.production import readable_by_others

    if settings.production:
        return _for_production(settings)
    open_ = [f"chmod {mode} {path}" for path, mode in readable_by_others(settings)]
    if open_:
        return CheckFinding("security", "other users can read the server's files", " && ".join(open_), is_warning=True)
    return CheckFinding("security", "only the server's user can read the server's files")


def _for_production(settings: Settings) -> CheckFinding:
    """All that is too weak in the settings and in the server that runs; if none does, this process stands for it."""
    from reward_server.production import process_weaknesses, settings_weaknesses
    from reward_server.store.occupancy import occupant

    keyless = not (_has_database(settings) and _count_keys(settings))
    weak, pid = settings_weaknesses(settings, keyless=keyless), occupant(settings.database)
    try:
        of_process = process_weaknesses(pid)
    except OSError:
        # It has ended since, or it is somebody else's.
        pid, of_process = None, process_weaknesses()
    if pid is not None:
        weak += of_process
    if weak:
        return CheckFinding("security", f"{counted(len(weak), 'setting')} too weak for production", "; ".join(weak))
    if of_process:
        mend = f"found no running server; one started from here would be refused: {'; '.join(of_process)}"
        return CheckFinding("security", "the settings are ready for production", mend, is_warning=True)
    return CheckFinding("security", "ready for production")


async def _check_pepper(settings: Settings, pepper: bytes) -> None:
    from reward_server.auth.key_ring import KeyRing
    from reward_server.clock import SystemClock
    from reward_server.store.store import Store

    store = await Store.open(settings.database)
    try:
        await KeyRing(store, SystemClock(), pepper).check_pepper()
    finally:
        await store.close()


def _has_database(settings: Settings) -> bool:
    from reward_server.store.engine import sqlite_file

    file = sqlite_file(settings.database)
    return file is None or file.exists()


def _count_keys(settings: Settings) -> int:
    from reward_server.store.store import Store

    async def look() -> int:
        store = await Store.open(settings.database)
        try:
            async with store.reading() as unit:
                return await unit.keys.count()
        finally:
            await store.close()

    return asyncio.run(look())
