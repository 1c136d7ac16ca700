"""Settings: from the environment and from flags, and one clear line when they are wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from reward_server.errors import ConfigurationError
from reward_server.removed_settings import REMOVED, gone
from reward_server.settings import PREFIX, Settings, load_settings
from reward_server.voice.build import own_voice_model


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("LABS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


def test_the_defaults_are_the_embedded_server(tmp_path: Path) -> None:
    settings = load_settings()
    assert (settings.host, settings.port) == ("127.0.0.1", 8321)
    assert settings.data == tmp_path / ".local/share/labs"
    assert settings.database == f"sqlite:///{tmp_path}/.local/share/labs/labs.sqlite"
    assert settings.encoder == "all-MiniLM-L6-v2"
    assert settings.is_loopback


def test_the_environment_is_read_and_flags_win(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LABS_PORT", "9000")
    monkeypatch.setenv("LABS_HOST", "0.0.0.0")
    monkeypatch.setenv("LABS_DATA", str(tmp_path))
    monkeypatch.setenv("LABS_LOG_LEVEL", "")
    settings = load_settings({"port": 9001, "host": None})
    assert (settings.host, settings.port, settings.data) == ("0.0.0.0", 9001, tmp_path)
    assert settings.log_level == "info"


def test_a_path_with_any_character_makes_a_database_url(tmp_path: Path) -> None:
    from reward_server.store.engine import check_url

    settings = load_settings({"data": tmp_path / "my data? 100%"})
    assert check_url(settings.database).database == str(tmp_path / "my data? 100%" / "labs.sqlite")


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("PORT", "99999", "LABS_PORT: input should be less than or equal to 65535"),
        ("PORT", "http", "LABS_PORT: "),
        ("LOG_LEVEL", "loud", "LABS_LOG_LEVEL: "),
        ("LLM_PRICES", "3", "LABS_LLM_PRICES: "),
        ("DRAIN_S", "inf", "LABS_DRAIN_S: "),
        ("HOSTS", "labs, https://labs.example.com", "LABS_HOSTS: 'https://labs.example.com' is not a host name"),
        ("HOSTS", "labs.example.com:8321", "LABS_HOSTS: 'labs.example.com:8321' is not a host name"),
        ("HOSTS", "*.example.com", "LABS_HOSTS: '*.example.com' is not a host name"),
        ("OTLP_ENDPOINT", "collector:4318", "LABS_OTLP_ENDPOINT: must begin with https:// or http://"),
        ("SCENARIOS", "/nowhere/at/all", "LABS_SCENARIOS: there is no such directory"),
        ("PEPPER", "too-short-canary", "LABS_PEPPER: must have at least 32 characters"),
        ("DATABASE_URL", "mysql://u:canary@h/db", "LABS_DATABASE_URL: the database 'mysql' is not supported"),
        ("REDIS_URL", "http://u:canary@h", "LABS_REDIS_URL: this is not a URL of Redis"),
        ("DATABASE_URL", "canary", "LABS_DATABASE_URL: this is not a database URL"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_without_secrets(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, complaint: str
) -> None:
    monkeypatch.setenv(f"LABS_{name}", value)
    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    assert caught.value.message.startswith(complaint)
    assert "\n" not in caught.value.message
    assert "canary" not in caught.value.message


def test_everything_that_is_wrong_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABS_PORT", "-1")
    monkeypatch.setenv("LABS_MAX_CONCURRENCY", "0")
    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    assert "LABS_PORT" in caught.value.message
    assert "LABS_MAX_CONCURRENCY" in caught.value.message


def test_what_is_said_of_several_has_no_doubled_punctuation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABS_DATABASE_URL", "mysql://u@h/db")
    monkeypatch.setenv("LABS_DRAIN_S", "x")
    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    assert "is not supported; use sqlite or postgresql; LABS_DRAIN_S: " in caught.value.message


@pytest.mark.parametrize("hosts", ["*", "labs.example.com, labs", "::1,127.0.0.1"])
def test_names_and_addresses_may_be_hosts(monkeypatch: pytest.MonkeyPatch, hosts: str) -> None:
    monkeypatch.setenv("LABS_HOSTS", hosts)
    assert load_settings().host_names == {name.strip() for name in hosts.split(",")}


def test_data_must_be_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="LABS_DATA: is not a directory"):
        load_settings({"data": tmp_path / "file"})


def test_no_setting_is_both_there_and_gone() -> None:
    assert not {f"{PREFIX}{name.upper()}" for name in Settings.model_fields} & REMOVED.keys()
    assert gone({"LABS_PORT": "1"}) == []
    assert gone({"labs_llm_usd_per_mtok_in": "3"}) == [
        "labs_llm_usd_per_mtok_in is gone: set LABS_LLM_PRICES, such as 3/15"
    ]


def test_an_unknown_flag_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="LABS_BOGUS"):
        load_settings({"bogus": 1})


def test_secrets_are_in_no_repr(tmp_path: Path) -> None:
    settings = load_settings({"pepper": "canary" * 8, "database_url": f"sqlite:///{tmp_path}/canary.sqlite"})
    for text in (repr(settings), str(settings), str(settings.model_dump()), settings.model_dump_json()):
        assert "canary" not in text


def test_settings_do_not_change() -> None:
    settings = load_settings()
    with pytest.raises(ValidationError):
        settings.port = 1


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True), ("127.9.9.9", True), ("localhost", True), ("::1", True), ("[::1]", True),
        ("0.0.0.0", False), ("::", False), ("192.168.1.1", False), ("example.test", False), ("localhost.evil", False),
    ],
)  # fmt: skip
def test_what_counts_as_this_machine(host: str, loopback: bool) -> None:
    assert Settings(host=host).is_loopback is loopback


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"persona_voice": "llm"}, "LABS_VOICE_MODEL: must name a model"),
        ({"persona_voice": "llm", "voice_model": "small"}, "LABS_VOICE_BASE_URL: must be given for vllm"),
    ],
)
def test_a_voice_needs_a_model_and_its_address(given: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        load_settings(given)
    assert problem in raised.value.message


def test_the_voice_speaks_with_its_own_model_or_that_of_the_judges() -> None:
    judges = {"llm_provider": "vllm", "llm_model": "large", "llm_base_url": "http://127.0.0.1:1/v1"}
    own = {"voice_model": "small", "voice_base_url": "http://127.0.0.1:2/v1", "voice_api_key": "k"}
    settings = load_settings({"persona_voice": "llm", **judges, **own})
    assert (settings.llm_model, settings.for_voice.llm_model) == ("large", "small")
    assert settings.for_voice.llm_base_url == "http://127.0.0.1:2/v1"
    assert own_voice_model(settings).name == "vllm/small"  # type: ignore[union-attr]
    assert own_voice_model(load_settings({"persona_voice": "llm", **judges})) is None
    assert own_voice_model(load_settings({**judges, **own})) is None
