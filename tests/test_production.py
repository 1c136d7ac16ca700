"""Production mode: what is too weak for strangers, all at once."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from reward_server import production
from reward_server.cli import data_checks
from reward_server.errors import ConfigurationError
from reward_server.production import memory_limit_bytes, process_weaknesses, require_strong, weaknesses
from reward_server.settings import Settings
from reward_server.store.occupancy import occupant, occupied

LIMIT_BYTES = 987_654_144
STRONG = {"production": True, "metrics_access": "operator", "hosts": "labs.example.com"}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder as a server makes it, for a process that is limited and is nobody special."""
    monkeypatch.setattr(production, "memory_limit_bytes", lambda pid: 1 << 32)
    monkeypatch.setattr(os, "geteuid", lambda: 10001)
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    for name in ("pepper", "labs.sqlite"):
        (folder / name).touch(mode=0o600)
    return folder


def test_strong_settings_start(data: Path) -> None:
    require_strong(Settings(data=data, **STRONG), keyless=False)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"metrics_access": "auto"}, "LABS_METRICS_ACCESS=operator"),
        ({"metrics_access": "open"}, "LABS_METRICS_ACCESS=operator"),
        ({"hosts": ""}, "LABS_HOSTS"),
        ({"hosts": "*"}, "LABS_HOSTS"),
        ({"log_level": "debug"}, "LABS_LOG_LEVEL"),
        ({"llm_provider": "openai", "llm_model": "some-model"}, "LABS_LLM_DAILY_USD"),
    ],
)
def test_each_weak_setting_is_named_with_what_to_set(data: Path, changes: dict[str, str], said: str) -> None:
    [found] = weaknesses(Settings(data=data, **STRONG | changes), keyless=False)
    assert said in found


@pytest.mark.parametrize("name", ["", "pepper", "labs.sqlite"])
def test_what_others_can_read_is_named_with_the_command(data: Path, name: str) -> None:
    (data / name).chmod(0o755 if not name else 0o640)
    [found] = weaknesses(Settings(data=data, **STRONG), keyless=False)
    assert found.endswith(f"chmod {'600' if name else '700'} {data / name}".rstrip("/"))


def test_all_are_listed_at_once_and_only_in_production(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(production, "memory_limit_bytes", lambda pid: None)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    data.chmod(0o755)
    weak = {"data": data, "hosts": "*", "metrics_access": "open", "log_level": "debug"}
    require_strong(Settings(**weak), keyless=True)
    with pytest.raises(ConfigurationError) as refused:
        require_strong(Settings(production=True, **weak), keyless=True)
    listed = [line for line in refused.value.message.splitlines() if line.startswith("  - ")]
    assert len(listed) == 7


@pytest.mark.parametrize(
    ("lines", "files", "limit"),
    [
        ("0::/\n", {"memory.max": "max\n"}, None),
        ("0::/\n", {"memory.max": "2147483648\n"}, 1 << 31),
        (
            "0::/labs.slice/one\n",
            {"labs.slice/one/memory.max": "max\n", "labs.slice/memory.max": "1000000\n"},
            1_000_000,
        ),
        ("9:cpu:/x\n4:memory:/x\n", {"memory/x/memory.limit_in_bytes": "5000000\n"}, 5_000_000),
        ("4:memory:/\n", {"memory/memory.limit_in_bytes": "9223372036854771712\n"}, None),
        ("0::/gone\n", {}, None),
    ],
    ids=["none", "container", "slice above", "first kind", "first kind, none", "unknown"],
)
def test_memory_limits_are_found(tmp_path: Path, lines: str, files: dict[str, str], limit: int | None) -> None:
    for process in ("self", "7"):
        (tmp_path / process).mkdir()
        (tmp_path / process / "cgroup").write_text(lines)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert memory_limit_bytes(None, tmp_path, tmp_path) == limit


@pytest.fixture
def limited() -> Iterator[int]:
    """The id of a process with a limit of its own."""
    with subprocess.Popen(["sleep", "60"]) as process:
        resource.prlimit(process.pid, resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
        yield process.pid
        process.kill()


def test_the_limits_of_another_process_are_its_own(limited: int) -> None:
    assert memory_limit_bytes(limited) == LIMIT_BYTES
    assert memory_limit_bytes() != LIMIT_BYTES
    assert not any("memory limit" in each for each in process_weaknesses(limited))


def test_the_doctor_judges_the_process_of_the_server_that_runs(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(data=data, llm_provider="none", **STRONG)
    limits: dict[int | None, int | None] = {None: None, os.getpid(): 1 << 32}
    monkeypatch.setattr(production, "memory_limit_bytes", limits.__getitem__)
    monkeypatch.setattr(data_checks, "_count_keys", lambda settings: 1)
    without = data_checks.security(settings)
    assert without.is_warning
    assert "no memory limit" in str(without.mend)
    owner = os.stat("/proc/self").st_uid
    with occupied(settings.database):
        assert occupant(settings.database) == os.getpid()
        found = data_checks.security(settings)
        assert "no memory limit" not in str(found.mend)
        assert (found.mend is None) is (owner != 0)
        limits[os.getpid()] = None
        weak = data_checks.security(settings)
        assert "no memory limit" in str(weak.mend)
        assert not weak.is_warning
    assert occupant(settings.database) is None
