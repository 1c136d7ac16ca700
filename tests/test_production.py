"""Production mode: what is too weak for strangers, all at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reward_server import production
from reward_server.errors import ConfigurationError
from reward_server.production import memory_limit_bytes, require_strong, weaknesses
from reward_server.settings import Settings

STRONG = {"production": True, "metrics_access": "operator", "hosts": "labs.example.com"}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder as a server makes it, for a process that is limited and is nobody special."""
    monkeypatch.setattr(production, "memory_limit_bytes", lambda: 1 << 32)
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
    monkeypatch.setattr(production, "memory_limit_bytes", lambda: None)
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
    (tmp_path / "cgroup").write_text(lines)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert memory_limit_bytes(tmp_path / "cgroup", tmp_path) == limit
