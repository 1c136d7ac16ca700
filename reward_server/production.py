"""Requirements on a server for strangers; with `LABS_PRODUCTION=true` it refuses to start, and names all it lacks.

Each check looks at what is there and changes nothing. Without production mode none of them is asked: on somebody's own
machine all of this is as it should be.
"""

from __future__ import annotations

import os
import resource
import stat
from collections.abc import Iterator
from pathlib import Path

from reward_server.errors import ConfigurationError
from reward_server.program import as_called
from reward_server.settings import Settings
from reward_server.store.engine import sqlite_file

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")
MOVING = frozenset({"latest", "preview", "stable"})
"""How names of models end that are given to one version after the other."""
_NO_LIMIT_BYTES = 1 << 60
"""What the first kind of control groups says where there is none is larger."""
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def require_strong(settings: Settings, *, keyless: bool) -> None:
    """`ConfigurationError` that lists all that is weak, if this is a server for production."""
    if settings.production and (found := weaknesses(settings, keyless=keyless)):
        listed = "\n".join(f"  - {each}" for each in found)
        raise ConfigurationError(f"LABS_PRODUCTION is set, and these settings are too weak for it:\n{listed}")


def weaknesses(settings: Settings, *, keyless: bool) -> list[str]:
    """All that is too weak for strangers in a server that this process is, with what to do about each."""
    return [*settings_weaknesses(settings, keyless=keyless), *process_weaknesses()]


def settings_weaknesses(settings: Settings, *, keyless: bool) -> list[str]:
    """The weaknesses that do not depend on the process."""
    found: list[str] = []
    if keyless:
        found.append(as_called("no API key exists, so calls need none: ./labs keys create NAME --lab LAB"))
    if settings.metrics_access != "operator":
        found.append("/metrics may be open to others, behind a proxy to everybody: LABS_METRICS_ACCESS=operator")
    if not settings.hosts or "*" in settings.host_names:
        found.append(
            "nothing says which Host headers are its own: name the server's own in LABS_HOSTS, such as labs.example.com"
        )
    if settings.log_level == "debug":
        found.append("LABS_LOG_LEVEL is debug: info is the most for production")
    asks = settings.llm_provider != "none" or (
        settings.decisions not in ("none", "local") and settings.asked_decision_model
    )
    if asks and settings.llm_daily_tokens is None and settings.llm_daily_usd is None:
        found.append("labs may spend any money on the language model: LABS_LLM_DAILY_USD or LABS_LLM_DAILY_TOKENS")
    asked = settings.asked_decision_model
    if asked is not None and is_moving(asked):
        found.append(f"{asked} may be another model tomorrow: name a version")
    found += [f"{path} can be read by others: chmod {wanted} {path}" for path, wanted in readable_by_others(settings)]
    return found


def is_moving(model: str) -> bool:
    """True if this is the name of whichever version is the newest, such as jev-latest or a name without its tag."""
    return model.casefold().replace(":", "-").split("-")[-1] in MOVING


def process_weaknesses(pid: int | None = None) -> list[str]:
    """The weaknesses of this process, or of the one with that id.

    Raises:
        OSError: there is no such process, or it is somebody else's.
    """
    found: list[str] = []
    if memory_limit_bytes(pid) is None:
        found.append("the process has no memory limit: set one in its container or service, or with ulimit -v")
    if (os.geteuid() if pid is None else (PROC / str(pid)).stat().st_uid) == 0:
        found.append("it runs as root: give it a user of its own")
    return found


def readable_by_others(settings: Settings) -> Iterator[tuple[Path, str]]:
    """Folder and files that only the server's user should read, and the mode for each."""
    from reward_server.auth.pepper import FILE_NAME

    database = sqlite_file(settings.database)
    files = [settings.data / FILE_NAME, *([database, Path(f"{database}-wal")] if database else [])]
    for path, wanted in ((settings.data, "700"), *((file, "600") for file in files)):
        if path.exists() and path.stat().st_mode & _OTHERS:
            yield path, wanted


def memory_limit_bytes(pid: int | None = None, proc: Path = PROC, groups: Path = CGROUPS) -> int | None:
    """The least memory that something allows this process, or the one with that id; None if nothing does."""
    membership = proc / ("self" if pid is None else str(pid)) / "cgroup"
    limits = [limit for limit in _group_limits(membership, groups) if limit < _NO_LIMIT_BYTES]
    what = resource.RLIMIT_AS
    address_space, _ = resource.getrlimit(what) if pid is None else resource.prlimit(pid, what)
    if address_space != resource.RLIM_INFINITY:
        limits.append(address_space)
    return min(limits, default=None)


def _group_limits(proc: Path, groups: Path) -> Iterator[int]:
    """Of the process's control group and those above it; inside a container its own is the top one."""
    try:
        lines = proc.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, kinds, inside = line.split(":", 2)
        if kinds and "memory" not in kinds.split(","):
            continue
        top, name = (groups / "memory", "memory.limit_in_bytes") if kinds else (groups, "memory.max")
        below = Path(inside.lstrip("/"))
        for folder in (below, *below.parents):
            try:
                said = (top / folder / name).read_text().strip()
            except OSError:
                continue
            if said.isdigit():
                yield int(said)
